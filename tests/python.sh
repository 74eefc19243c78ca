#!/bin/bash
# The Python package as its wheel holds it, with the Python of the system; skipped where there is none.
set -euo pipefail
test="the Python package answers like the program"
echo "[ RUN      ] $test"
python=/usr/bin/python3
if ! "$python" -c 'import ctypes, unittest, zipfile' 2>/dev/null; then
    echo "[  SKIPPED ] $test"
    exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
wheel=$("$python" -B api/python/wheel_builder.py "$scratch")
mkdir "$scratch/site"
"$python" -m zipfile -e "$scratch/$wheel" "$scratch/site"
export MESHSIM_LIBRARY=$PWD/$B/libmeshsim.so.0 MESHSIM=$PWD/$B/meshsim PYTHONPATH=$scratch/site PYTHONDONTWRITEBYTECODE=1
unset MESHSIM_CONFIGS
"$python" tests/python/test_meshsim.py
"$python" api/examples/compare_clusters.py
echo "[       OK ] $test"
