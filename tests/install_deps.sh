#!/bin/bash
# Installs the packages of the build and the tests; quick when everything is there.
set -euo pipefail
packages="gcc g++ make libcjson-dev libyaml-dev libexpat1-dev libgsl-dev libcmocka-dev gnuplot-nox clang clang-format clang-tidy
    universal-ctags libopenmpi-dev openmpi-bin libopenblas-dev valgrind python3-jsonschema"
missing=()
for package in $packages; do
    state=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
    [ "$state" = "install ok installed" ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "deps: everything is installed"
    exit 0
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
fi
echo "deps: installing ${missing[*]}"
"${as_root[@]}" apt-get update
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
