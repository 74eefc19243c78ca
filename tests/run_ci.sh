#!/bin/bash
# Everything that must hold: build, lint, tests, tests under sanitizers. All of it runs even when
# a part fails; the last line sums up what was counted.
set -uo pipefail
status=0
summaries="build/lint/lint.summary build/opt/check.summary build/address-undefined/check.summary"
rm -f $summaries
make() { command make --no-print-directory "$@" || status=1; }
jobs=$(nproc)
export LINT_JOBS=$jobs
# kernels for two of the GPUs, which compile the two branches that there are; `make` makes all
export CUDA_ARCHS="80 90"
make -j"$jobs" all
make lint
make -j"$jobs" check
make -j"$jobs" check SAN=address,undefined
for summary in $summaries; do
    [ -e "$summary" ] || { echo "$summary is missing: that part did not finish" >&2; status=1; }
done
cat $summaries 2>/dev/null | awk '
    { p += $1; f += $3; s += $5 }
    END { printf "%d passed, %d failed, %d skipped\n", p, f, s }'
exit $status
