#!/bin/bash
# Searches that take a minute are interrupted as soon as they have a first plan of each stack: they end with status 130, and print
# these plans and a bound of what is open, in JSON too, before all meshes have a bound. The output is that of a cmocka program, for
# tests/run_tests.sh.
set -uo pipefail
MESHSIM=${MESHSIM:-build/opt/meshsim}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
num_failed=0

# Arguments: what must hold, the command that tells
expect()
{
    local what=$1
    shift
    "$@" || { echo "$what"; failed=1; }
}

# Arguments: text, number of times that it is printed
expect_times()
{
    expect "not $2 times: $1" [ "$(grep -c "$1" "$scratch/out")" -eq "$2" ]
}

# Interrupts a search when so many stacks, the ceiling among them, have a plan. Arguments: --stack, number of plans
interrupt()
{
    local program status
    : >"$scratch/log" # it may be read before the program has begun
    MESHSIM_DEBUG=search "$MESHSIM" search --model deepseek-v3 --gpus 4096 --stack "$1" --threads 1 --json >"$scratch/out" 2>"$scratch/log" &
    program=$!
    for _ in {1..1000}; do
        [ "$(grep -c "first plan after" "$scratch/log")" -eq "$2" ] && break
        sleep 0.1
    done
    kill -INT $program
    wait $program
    status=$?
    expect "exit status $status, expected 130" [ $status -eq 130 ]
    expect "no message" grep -q "^error: interrupted: these are the best of the plans explored so far" "$scratch/log"
    expect "the first plans came after all bounds" eval '! grep -q "bounded after" "$scratch/log"'
    expect "progress on no terminal" eval '! grep -q "of the search done" "$scratch/log"'
    expect_times '"optimal": false' "$2"
    expect_times '"smallest_open_bound_s": [0-9.]*[1-9]' "$2"
}

# Arguments: test, its stacks, number of plans
run()
{
    failed=0
    echo "[ RUN      ] $1"
    interrupt "$2" "$3"
    expect "no plan" grep -q '"schema": "meshsim.plan/1"' "$scratch/out"
    expect "a stack without a plan" eval '! grep -q "\"fastest_step_s\": null" "$scratch/out"'
    if [ $failed -eq 0 ]; then echo "[       OK ] $1"; else num_failed=$((num_failed + 1)); fi
}

run an_interrupted_search_prints_a_plan ideal 1
run an_interrupted_search_prints_a_plan_of_each_stack megatron,torchtitan 3
exit $((num_failed > 0))
