#!/bin/bash
# Golden outputs, and results of commands that have no golden case in JSON, against docs/schemas; skipped without Python's
# jsonschema. A result with a key too many must fail.
set -euo pipefail
test="JSON results keep their schemas"
echo "[ RUN      ] $test"
python=/usr/bin/python3
if ! "$python" -c 'import jsonschema' 2>/dev/null; then
    echo "[  SKIPPED ] $test: no python3-jsonschema"
    exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
number=0
result() { number=$((number + 1)); "$B/meshsim" "$@" --json >"$scratch/$number.json" 2>/dev/null || [ $? -eq 3 ]; }
result stack
result mesh
result info
result help search
result predict --model 8b --gpus 64 --zero 3 --advise
result search --model llama-15m --gpus 2 --global-batch 8 --why tp=2
result compare tests/data/compare/predicted.json tests/data/compare/kineto.json
result calibrate --from tests/data/collectives_cited.csv
result calibrate --from-run tests/data/own_runs.csv --holdout --fit-rows 3
"$B/meshsim" search --model 8b --gpus 64 --json-lines --quiet 2>&1 >/dev/null | tail -1 >"$scratch/progress.json"
"$python" tests/schemas.py docs/schemas tests/golden/*/*.test "$scratch"/*.json
sed '2s/^/  "surplus": 1,\n/' "$scratch/1.json" >"$scratch/surplus.json"
if "$python" tests/schemas.py docs/schemas "$scratch/surplus.json" >"$scratch/said"; then
    echo "an unknown key passes"
    exit 1
fi
grep -q surplus "$scratch/said"
echo "[       OK ] $test"
