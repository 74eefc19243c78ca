#!/bin/bash
# Sizes of build/bundle, for the compute capabilities that are its arguments, and of the tracked sources that travel with it. Fails where a bundle
# for one of them is above 32 MiB, or it and the sources together are 60 MiB or more, so that both can be sent to a machine in one piece of
# 64 MiB; a bundle for several is only printed.
set -euo pipefail
cd "$(dirname "$0")/.."
mib() { awk "BEGIN { printf \"%.1f\", $1 / 1048576 }"; }
bundle=$(find build/bundle -type f -printf '%s\n' | awk '{ bytes += $1 } END { printf "%d", bytes }')
sources=$(git ls-files -z | xargs -0 stat -c %s -- | awk '{ bytes += $1 } END { printf "%d", bytes }')
echo "bundle for compute capabilities $*: $(mib "$bundle") MiB, with tracked sources $(mib $((bundle + sources))) MiB"
[ $# -eq 1 ] || exit 0
[ "$bundle" -le $((32 << 20)) ] || { echo "error: a bundle for one GPU must be at most 32 MiB" >&2 && exit 1; }
[ $((bundle + sources)) -lt $((60 << 20)) ] || { echo "error: bundle and sources must be below 60 MiB" >&2 && exit 1; }
