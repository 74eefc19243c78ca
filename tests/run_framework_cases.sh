#!/bin/bash
# Asks the program for each row of tests/frameworks/cases.csv: `predict --stack STACK` prices a legal plan, and refuses another
# with the rule's name ("rule zero: ..."), or with any message if no stack (refused_by is `plan`) or no such device (`profile`) can have the plan. The
# output is that of a cmocka program, for tests/run_tests.sh. 
#   ONLY  rows of this stack only, as the first column writes it
set -uo pipefail
cases=tests/frameworks/cases.csv
MESHSIM=${MESHSIM:-build/opt/meshsim}
# only the third cell may have commas, and then has quotes
row_pattern='^([^,]*),([^,]*),("([^"]*)"|([^,]*)),([^,]*),([^,]*),([^,]*)$'
number=1
failed=0

# Whether exit status and messages are those of the verdict; a plan that does not fit (3) has been priced.
is_as_told()
{
    local status=$1 messages=$2 verdict=$3 refused_by=$4
    case "$verdict/$refused_by" in
    legal/*) [ "$status" -eq 0 ] || [ "$status" -eq 3 ] ;;
    */plan | */profile) [ "$status" -eq 2 ] ;;
    *) [ "$status" -eq 2 ] && grep -q "rule $verdict:" <<<"$messages" ;;
    esac
}

# Arguments: name of the row, stack, model, flags, verdict, refused_by
judge()
{
    local name=$1 stack=$2 model=$3 flags=$4 verdict=$5 refused_by=$6 messages status=0
    echo "[ RUN      ] $name"
    messages=$("$MESHSIM" predict --quiet --stack "$stack" --model "$model" $flags 2>&1 >/dev/null </dev/null) || status=$?
    if is_as_told "$status" "$messages" "$verdict" "$refused_by"; then
        echo "[       OK ] $name"
    else
        echo "[  FAILED  ] $name: --stack $stack --model $model $flags: want $verdict, exit status $status: $messages"
        failed=1
    fi
}

{
    read -r _
    while IFS= read -r row; do
        number=$((number + 1))
        [[ $row =~ $row_pattern ]] || { echo "$cases:$number: not a row"; exit 1; }
        stack=${BASH_REMATCH[1]}
        [ "${ONLY:-$stack}" = "$stack" ] || continue
        judge "$cases:$number" "$stack" "${BASH_REMATCH[2]}" "${BASH_REMATCH[4]}${BASH_REMATCH[5]}" "${BASH_REMATCH[6]}" "${BASH_REMATCH[8]}"
    done
} <"$cases"
exit $failed
