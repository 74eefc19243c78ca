#!/bin/sh
# The cost of safety: fastest step of each job by what a plan must be: any (the stack's conventions without its rules), accepted by
# the framework, and accepted and fitting with probability 0.95; then the recommended plan, the simplest in the tie band.
# Usage: docs/safety.sh PROGRAM STACK
set -eu
program=$1
stack=$2
configs=${MESHSIM_CONFIGS:-$(dirname "$0")/../configs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -e '/^  "rules":/d' -e 's/^  "schedules": .*/  "schedules": "all",/' -e 's/\("can_cp_[a-z_]*": \)false/\1true/' \
    "$configs/stacks/$stack.json" > "$work/$stack.json"

# step_of FIELD ARGUMENTS: the step time of the certificate or of the first plan; "-": no plan
step_of() {
    field=$1
    shift
    "$program" search --model "$model" --gpus "$gpus" --cluster "$cluster" --top 10 --json --quiet "$@" 2> "$work/errors" > "$work/out" || true
    awk -v field="$field" '
        field == "best" && /"best_step_s":/ { gsub(/[^0-9.e-]/, "", $2); print $2 == "" ? "-" : $2; found = 1; exit }
        field == "first" && /"step_s":/ { gsub(/[^0-9.e-]/, "", $2); print $2; found = 1; exit }
        END { if (!found) print "-" }' "$work/out"
}

printf '%-14s %6s  %-13s %9s %9s %9s %11s %9s %9s\n' model GPUs cluster 'any (s)' 'legal (s)' 'safe (s)' 'advised (s)' 'legal (%)' 'safe (%)'
for job in "70b 512" "8b 64" "405b 16384" "mixtral-8x7b 128" "qwen3-235b 512" "deepseek-v3 2048"; do
    model=${job% *} gpus=${job#* }
    for cluster in hgx-h100 hgx-a100-80g hgx-b200 gb200-nvl72; do
        any=$(step_of best --stack "$work/$stack.json" --min-fit 0)
        legal=$(step_of best --stack "$stack" --min-fit 0)
        safe=$(step_of best --stack "$stack")
        advised=$(step_of first --stack "$stack")
        echo "$model $gpus $cluster $any $legal $safe $advised"
    done
done | awk '
    function text(s) { return s == "-" ? "-" : sprintf("%.4g", s) }
    function more(a, b) { return a == "-" || b == "-" ? "-" : sprintf("%+.1f", 100 * (b / a - 1)) }
    { printf "%-14s %6s  %-13s %9s %9s %9s %11s %9s %9s\n", $1, $2, $3, text($4), text($5), text($6), text($7), more($4, $5), more($5, $6) }'
