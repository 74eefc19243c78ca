#!/bin/bash
# Interleaved pairs of a calibration and a run, with 1 and with 2 ranks: predicted over measured step time.
#   PAIRS=5 BACKEND=loop|mpi MODEL=llama-15m tests/bench/bench_calibrated.sh [build/meshsim]
# Meant for an idle machine: runs that do not repeat within 10 % say nothing about predictions.
set -euo pipefail
meshsim=${1:-build/meshsim}
pairs=${PAIRS:-5} backend=${BACKEND:-loop} steps=${STEPS:-8}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

seconds() {
    awk -v section="\"$2\":" '$1 == section {inside = 1} inside && $1 == "\"step_s\":" {
        sub(",", "", $2); print $2; exit}' "$1"
}
pair() { # RANKS
    "$meshsim" calibrate --quick --quiet --backend "$backend" --ranks "$1" -o "$folder/p.json" >/dev/null
    "$meshsim" run --model "${MODEL:-llama-15m}" --cluster cpu --stack meshsim --dp-shard "$1" \
        --seq "${SEQ:-128}" --global-batch "${BATCH:-8}" --backend "$backend" --steps "$steps" \
        --profile "$folder/p.json" --json --quiet >"$folder/run.json"
    echo "$(seconds "$folder/run.json" measured) $(seconds "$folder/run.json" predicted)" >>"$folder/ranks$1"
}
for ((i = 0; i < pairs; i++)); do
    for ranks in 1 2; do
        [ "$ranks" -gt "$(nproc)" ] || pair "$ranks"
    done
done
for ranks in 1 2; do
    [ -e "$folder/ranks$ranks" ] || continue
    sort -g "$folder/ranks$ranks" | awk -v ranks="$ranks" '
        {m[NR] = $1; r[NR] = $2 / $1}
        END {
            n = NR
            for (i = 1; i <= n; i++)
                for (j = i + 1; j <= n; j++)
                    if (r[j] < r[i]) {t = r[i]; r[i] = r[j]; r[j] = t}
            median = n % 2 ? r[(n + 1) / 2] : (r[n / 2] + r[n / 2 + 1]) / 2
            printf "%d rank%s: predicted/measured median %.3f (%.3f to %.3f, %d pairs); " \
                   "measured steps within %.0f %% of each other\n",
                   ranks, ranks == 1 ? "" : "s", median, r[1], r[n], n, 100 * (m[n] / m[1] - 1)
        }'
done
