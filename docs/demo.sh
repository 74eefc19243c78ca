#!/bin/bash
# From a search to a run on this machine's cores, predicted with assumed and with measured costs. About a minute.
#   MODEL=llama-15m SEQ=128 BATCH=8 STEPS=6 BACKEND=loop|mpi CORES=2 docs/demo.sh [build/meshsim]
set -euo pipefail
meshsim=${1:-build/meshsim}
model=${MODEL:-llama-15m} steps=${STEPS:-6} backend=${BACKEND:-loop}
cores=${CORES:-2}
[ "$(nproc)" -ge "$cores" ] || cores=$(nproc)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

show() { printf '\n$ %s\n' "${*//$folder\//}"; }
# seconds FILE SECTION: step_s in an object of a run's JSON
seconds() {
    awk -v section="\"$2\":" '$1 == section {inside = 1} inside && $1 == "\"step_s\":" {
        sub(",", "", $2); print $2; exit}' "$1"
}
# run_plan NAME OPTIONS...: measured and predicted seconds of a step
run_plan() {
    local name=$1
    shift
    show meshsim run "${plan[@]}" "$@"
    "$meshsim" run "${plan[@]}" --backend "$backend" --steps "$steps" --json --quiet "$@" >"$folder/$name.json"
    measured[$name]=$(seconds "$folder/$name.json" measured)
    predicted[$name]=$(seconds "$folder/$name.json" predicted)
    printf 'a step: measured %.1f ms, predicted %.1f ms\n' \
        "$(awk "BEGIN {print 1e3 * ${measured[$name]}}")" "$(awk "BEGIN {print 1e3 * ${predicted[$name]}}")"
}
declare -A measured predicted

search=(--gpus "$cores" --model "$model" --cluster cpu --stack meshsim --seq "${SEQ:-128}"
        --global-batch "${BATCH:-8}" --precision fp32)
show meshsim search "${search[@]}"
"$meshsim" search "${search[@]}" | tee "$folder/search.txt"
read -ra plan <<<"$(sed -n 's/^try *meshsim predict //p' "$folder/search.txt" | head -1)"

run_plan assumed
calibrate=(calibrate --quick --backend "$backend" --ranks "$cores" -o "$folder/this.json")
show meshsim "${calibrate[@]}"
"$meshsim" "${calibrate[@]}" >"$folder/calibration.txt"
sed -n '/^machine/,/^$/p' "$folder/calibration.txt"
show meshsim predict "${plan[@]}" --profile this.json
"$meshsim" predict "${plan[@]}" --profile "$folder/this.json" | grep '^step time'
run_plan calibrated --profile "$folder/this.json"

printf '\n%-12s %14s %15s %20s\n' costs 'measured (ms)' 'predicted (ms)' 'predicted/measured'
for name in assumed calibrated; do
    awk -v n="$name" -v m="${measured[$name]}" -v p="${predicted[$name]}" \
        'BEGIN {printf "%-12s %14.1f %15.1f %20.3f\n", n, 1e3 * m, 1e3 * p, p / m}'
done
echo "Where other programs share the cores, a run takes longer than any prediction."
