#!/bin/bash
# Compares the work of searches with what is on record: numbers of plans, which must be equal, and the most memory of all
# arenas (tests/data/search_work.csv); instructions of the program's own functions, without the C library's, which depend on the
# processor (tests/data/search_instructions.csv, a row for each compiler, with default flags). Memory and instructions may grow by
# 5 %. Skipped where neither is comparable: under sanitizers, and for instructions without valgrind or a record of the compiler.
#   UPDATE=1  rewrites the record of numbers and memory, and of instructions with this compiler
#   CC        the compiler that made the program
set -uo pipefail
export LC_ALL=C
MESHSIM=${MESHSIM:-build/opt/meshsim}
WORK=${WORK:-tests/data/search_work.csv}
INSTRUCTIONS=${INSTRUCTIONS:-tests/data/search_instructions.csv}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# Arguments: test, reason
skip() { printf '[ RUN      ] %s\n%s\n[  SKIPPED ] %s\n' "$1" "$2" "$1"; }

# Arguments: model (options may follow it), GPUs; prints its row: configurations, evaluated, replayed, bytes
work_of()
{
    # shellcheck disable=SC2086 # options may follow the model
    MESHSIM_DEBUG=search "$MESHSIM" search --model $1 --gpus "$2" --threads 1 --json --quiet >"$scratch/out" 2>"$scratch/log" || return 1
    echo "$1,$2,$(sed -nE 's/^    "(configurations|evaluated|replayed)": ([0-9]+),$/\2/p' "$scratch/out" | paste -sd,),$(
        sed -n 's/^\[search\] at most \([0-9]*\) bytes in arenas$/\1/p' "$scratch/log")"
}

# Arguments: model, GPUs; prints its row: the compiler, instructions of functions in the program
instructions_of()
{
    valgrind --tool=callgrind --callgrind-out-file="$scratch/calls" --compress-strings=no --compress-pos=no \
        "$MESHSIM" search --model "$1" --gpus "$2" --threads 1 --quiet >/dev/null 2>&1 || return 1
    awk -v row="$compiler,$1,$2" '
        /^ob=/ { own = /\/meshsim$/ }
        /^calls=/ { skip = 1; next } # the next line is what the callee took
        /^[0-9]/ { if (own && !skip) sum += $2; skip = 0 }
        END { printf "%s,%.0f\n", row, sum }' "$scratch/calls"
}

# Compares two rows: all cells but the last are equal, the last is at most 5 % more. Arguments: what it is, row, recorded row
compare()
{
    local what=$1 row=$2 record=$3
    [ "${row%,*}" = "${record%,*}" ] && awk -v now="${row##*,}" -v was="${record##*,}" 'BEGIN { exit !(now > 0 && now <= 1.05 * was) }' && return
    echo "$what: $row, but the record is $record: if more work is meant, make check T=search_work UPDATE=1"
    return 1
}

# Arguments: name of the test, file of the record, command, beginning of the rows to compare
check()
{
    local name=$1 record=$2 make_row=$3 begin=$4 faults=0 row line model gpus
    echo "[ RUN      ] $name"
    head -1 "$record" >"$scratch/new"
    while read -r line; do
        [[ $line == "$begin"* ]] || { echo "$line" >>"$scratch/new"; continue; }
        IFS=, read -r model gpus _ <<<"${line#"$begin"}"
        row=$("$make_row" "$model" "$gpus") || { echo "$name: the search of $model on $gpus GPUs failed"; faults=$((faults + 1)); continue; }
        echo "$row" >>"$scratch/new"
        [ "${UPDATE:-}" = 1 ] || compare "$(head -1 "$record")" "$row" "$line" || faults=$((faults + 1))
    done < <(tail -n +2 "$record")
    [ "${UPDATE:-}" != 1 ] || [ $faults -ne 0 ] || cp "$scratch/new" "$record"
    if [ $faults -eq 0 ]; then echo "[       OK ] $name"; else failed=1; fi
}

case ${B:-build/opt} in
*/opt) ;;
*)
    skip searches_look_at_no_more_plans "only for build/opt"
    exit 0
    ;;
esac
check searches_look_at_no_more_plans "$WORK" work_of ""

name=searches_take_no_more_instructions
cc=${CC:-gcc} cc=${cc##* } # without a wrapper before it
compiler=$(basename "$cc")-$("$cc" -dumpversion)-$("$cc" -dumpmachine)
if ! command -v valgrind >/dev/null; then
    skip $name "needs valgrind"
elif [ "${UPDATE:-}" != 1 ] && ! grep -q "^$compiler," "$INSTRUCTIONS"; then
    skip $name "no record for $compiler: make check T=search_work UPDATE=1 adds one"
else
    [ "${UPDATE:-}" != 1 ] || grep -q "^$compiler," "$INSTRUCTIONS" || printf '%s,8b,8,0\n%s,8b,64,0\n' "$compiler" "$compiler" >>"$INSTRUCTIONS"
    check $name "$INSTRUCTIONS" instructions_of "$compiler,"
fi
exit $failed
