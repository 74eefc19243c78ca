#!/bin/bash
# A search that takes a minute is interrupted as soon as it has a first plan: it ends with status 130, and prints that plan, in
# JSON too, before all meshes have a bound. The output is that of a cmocka program, for tests/run_tests.sh.
set -uo pipefail
MESHSIM=${MESHSIM:-build/opt/meshsim}
name=an_interrupted_search_prints_a_plan
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# Arguments: what must hold, the command that tells
expect()
{
    local what=$1
    shift
    "$@" || { echo "$what"; failed=1; }
}

echo "[ RUN      ] $name"
: >"$scratch/log" # it may be read before the program has begun
MESHSIM_DEBUG=search "$MESHSIM" search --model deepseek-v3 --gpus 4096 --stack ideal --threads 1 --json >"$scratch/out" 2>"$scratch/log" &
program=$!
for _ in {1..1000}; do
    grep -q "first plan after" "$scratch/log" && break
    sleep 0.1
done
kill -INT $program
wait $program
status=$?
expect "exit status $status, expected 130" [ $status -eq 130 ]
expect "no message" grep -q "^error: interrupted: these are the best of the plans explored so far" "$scratch/log"
expect "the first plan came after all bounds" eval '! grep -q "bounded after" "$scratch/log"'
expect "progress on no terminal" eval '! grep -q "of the search done" "$scratch/log"'
expect "the plan is called optimal" grep -q '"optimal": false' "$scratch/out"
expect "no open bound" grep -q '"smallest_open_bound_s": [0-9]' "$scratch/out"
expect "no plan" grep -q '"schema": "meshsim.plan/1"' "$scratch/out"
if [ $failed -eq 0 ]; then echo "[       OK ] $name"; fi
exit $failed
