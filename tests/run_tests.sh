#!/bin/bash
# Runs test programs, fuzz corpora and golden cases, one more at a time than there are cores, since
# some wait, and ends with the line `N passed, N failed, N skipped`. Arguments: programs (build/...) and golden files (*.test).
#   B        build folder of the configuration; logs go to $B/logs
#   T        what the file names were selected by, for messages
#   SUMMARY  file that receives the last line ($B/check.summary)
#   LIMIT_S  seconds that a program may take (1200)
#   JOBS     how many run at once
#   TIMES    1: the times of the ten slowest are printed, wall and processor
set -uo pipefail
# These take longest, in this order: they begin first, so that no core is idle at the end.
SLOW="test_cuda_runner test_run_mpi test_cuda_flash prop_ledger prop_run test_cuda_bf16 test_measure prop_search test_cuda_norm prop_why
    test_cuda_fp8_runner test_cuda_measure test_gpu_report test_cuda_processes test_layer_programs test_cuda_attention test_torch_oracle
    test_cuda_transfers test_cuda_fake_ranks test_cuda_faults"

B=${B:-build/opt}
SUMMARY=${SUMMARY:-$B/check.summary}
LOGS=$B/logs
export B UPDATE="${UPDATE:-}" LOGS MESHSIM="$B/meshsim"
rm -rf "$LOGS"
mkdir -p "$LOGS"

# The arguments, each on a line: those of SLOW first.
slow_first()
{
    local item name rank at
    for item in "$@"; do
        name=${item##*/}
        rank=99 at=10
        for slow in $SLOW; do
            [ "$slow" != "$name" ] || rank=$at
            at=$((at + 1))
        done
        echo "$rank $item"
    done | sort -s -n -k 1,1 | cut -d ' ' -f 2-
}

# One argument: writes $LOGS/NAME.log and "passed failed skipped" to $LOGS/NAME.count.
run_one()
{
    local item=$1 name rc=0
    name=$(basename "$item")
    local log=$LOGS/${item//\//_}.log # the path: two folders may hold files of one name
    local count=${log%.log}.count
    case "$item" in
    *.test)
        tests/run_golden.sh "$item" >"$log" 2>&1 || rc=$?
        if [ $rc -eq 0 ]; then echo "1 0 0"; else echo "0 1 0"; fi >"$count"
        ;;
    */tests/fuzz/fuzz_*)
        local files=(tests/fuzz/corpus/"${name#fuzz_}"/*)
        [ -e "${files[0]}" ] || files=()
        timeout 300 "$item" "${files[@]}" >"$log" 2>&1 || rc=$?
        local ok
        ok=$(grep -c '^ok ' "$log" || true)
        local bad=$((${#files[@]} - ok))
        if [ $rc -ne 0 ] && [ $bad -eq 0 ]; then bad=1; fi
        echo "$ok $bad 0" >"$count"
        [ $bad -eq 0 ] || rc=1
        ;;
    *)
        timeout "${LIMIT_S:-1200}" "$item" >"$log" 2>&1 || rc=$?
        # a test that began and neither passed nor was skipped has failed, crashes included
        awk -v rc=$rc '
            /^\[ RUN      \] /  { run[substr($0, 14)] = 1 }
            /^\[       OK \] /  { ok[substr($0, 14)] = 1 }
            /^\[  SKIPPED \] /  { skip[substr($0, 14)] = 1 }
            END {
                for (t in run)
                    if (t in ok) p++; else if (t in skip) s++; else f++
                if (rc != 0 && f == 0) f = 1
                if (rc == 0 && p + f + s == 0) f = 1 # no test ran at all
                print p + 0, f + 0, s + 0
            }' "$log" >"$count"
        read -r _ failed _ <"$count"
        [ "$failed" -eq 0 ] || rc=1
        ;;
    esac
    if [ $rc -ne 0 ]; then
        { echo "FAILED $item (exit status $rc)"; grep -v '^\[       OK \]\|^\[ RUN      \]\|^ok ' "$log" | head -60; } >&2
    fi
    return 0
}
export -f run_one

if [ $# -eq 0 ] && [ -n "${T:-}" ]; then
    echo "no test file's name contains \"$T\"" >&2
    exit 2
fi
[ $# -eq 0 ] || slow_first "$@" | tr '\n' '\0' |
    xargs -0 -n 1 -P "${JOBS:-$(($(nproc) + 1))}" bash -c 'TIMEFORMAT="%R %U %S $0"; { time run_one "$0" 2>&3; } 3>&2 2>>"$LOGS/times"'
[ -z "${TIMES:-}" ] || { echo "slowest: wall, user, system seconds"; sort -rn "$LOGS/times" | head; }

line=$(cat "$LOGS"/*.count /dev/null 2>/dev/null |
    awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped", p, f, s }')
num_counts=$(find "$LOGS" -name '*.count' | wc -l)
echo "$line" | tee "$SUMMARY"
case "$line" in
*", 0 failed,"*) [ "$num_counts" -eq $# ] ;;
*) exit 1 ;;
esac
