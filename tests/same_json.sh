#!/bin/bash
# Whether two builds of the program print the same JSON on a fixed list of 60 commands, so that a change of structure
# can show that it changed no figure: tests/same_json.sh BEFORE AFTER. Both are programs; each reads its own configs/.
# RUNS, KERNELS, COLLECTIVES: tables of published measurements for `validate` in place of the small ones of tests/data.
# Only elapsed_s is left out: searches run on one thread, so that what they count is repeatable too.
set -uo pipefail
before=$(realpath "$1")
after=$(realpath "$2")
cd "$(dirname "$0")/.."
runs=${RUNS:-tests/data/runs_sample.csv}
kernels=${KERNELS:-tests/data/runs_one_source.csv}
collectives=${COLLECTIVES:-tests/data/collectives_sample.csv}
plans=configs/plans

commands()
{
    cat <<END
predict --model 70b --gpus 512 --tp 8 --pp 4 --zero 1
predict --model 8b --gpus 64 --zero 3
predict --model 8b --gpus 16 --tp 4 --dp-replicate 2 --dp-shard 2 --zero 2 --recompute full
predict --model 405b --gpus 16384 --tp 8 --pp 16 --global-batch 2048 --zero 1
predict --model mixtral-8x7b --gpus 64 --tp 2 --ep 8 --pp 2
predict --model deepseek-v3 --gpus 2048 --pp 16 --ep 64 --cluster hgx-h800 --zero 1
predict --model deepseek-v3 --gpus 256 --pp 8 --ep 32 --schedule dualpipev --zero 1
predict --model qwen3-235b-a22b --gpus 256 --tp 4 --pp 4 --ep 16 --cluster gb200-nvl72
predict --model gpt3-175b --gpus 1024 --tp 8 --pp 8 --schedule interleaved --virtual-stages 2 --seq 2048 --cluster hgx-a100-80g
predict --model gpt3-175b --gpus 128 --tp 8 --pp 16 --schedule gpipe --seq 2048 --cluster hgx-a100-80g
predict --model 8b --gpus 32 --cp 4 --seq 128k --cp-method ring --global-batch 32
predict --model 8b --gpus 32 --cp 4 --seq 128k --cp-method ulysses --global-batch 32
predict --model 70b --gpus 256 --tp 8 --cp 2 --pp 4 --precision fp8 --cluster hgx-b200
predict --model 70b --gpus 64 --tp 8 --pp 2 --stack megatron
predict --model 70b --gpus 64 --tp 8 --stack torchtitan
predict --model llama-2-7b --gpus 8 --stack deepspeed --zero 3
predict --model 8b --gpus 64 --cluster mi300x --tp 2
predict --model 8b --gpus 256 --cluster tpu-v5p
predict --model 8b --gpus 32 --cluster h100-efa --zero 3
predict --model 8b --gpus 16 --tp 2 --pp 2 --engine event
predict --model gemma-2-27b --gpus 16 --tp 4 --pp 2
predict --model llama-4-scout --gpus 128 --tp 4 --ep 8
predict --model gpt-oss-120b --gpus 64 --ep 16
predict --model 70b --gpus 8 --tp 8
predict --model 8b --gpus 32 --pp 4 --schedule zb-h1
predict --model 8b --gpus 32 --pp 4 --schedule zb-v --recompute selective
predict --model 8b --gpus 64 --order dp,pp,tp --tp 4 --pp 2
predict $plans/llama-3.1-70b-512.json
search --gpus 512 --model 70b --threads 1
search --gpus 64 --model 8b --threads 1
search --gpus 8 --model 8b --threads 1
search --gpus 16 --model 8b --threads 1 --stack torchtitan
search --gpus 32 --model mixtral-8x7b --threads 1 --limit tp<=4
search --gpus 128 --model qwen3-235b-a22b --threads 1 --limit pp<=4 --limit tp<=2
search --gpus 64 --model 70b --threads 1 --fix tp=8 --stack megatron
search --gpus 64 --model 8b --seq 64k --threads 1
search --gpus 8 --model 405b --threads 1
search --gpus 64 --model gpt3-13b --seq 2048 --cluster hgx-a100-40g --threads 1
search --gpus 72 --model 70b --cluster gb200-nvl72 --threads 1
search --gpus 24 --model 8b --threads 1
search --gpus 64 --model 8b --threads 1 --why tp=8,pp=4
search --gpus 64 --model 70b --precision fp8 --threads 1
search --gpus 256 --model 70b --threads 1 --stack ideal
search --gpus 96 --model gemma-2-27b --threads 1
simulate --model 8b --gpus 64 --pp 4 --tp 2 --schedule zb-h1 --global-batch 64
simulate --model 8b --gpus 16 --tp 2 --pp 2 --detail action
simulate --model 8b --gpus 32 --zero 3
simulate --model 70b --gpus 64 --tp 8 --pp 4 --slow rank=5:1.3
simulate --model mixtral-8x7b --gpus 32 --ep 8 --tp 2 --global-batch 64
simulate --model 8b --gpus 16 --pp 4 --engine replay
simulate --model 8b --gpus 8 --cp 4 --seq 32k --global-batch 8
simulate --model 8b --gpus 32 --pp 4 --schedule dualpipev --global-batch 128
simulate --model 8b --gpus 16 --tp 4 --zero 2 --async-tp on
simulate $plans/llama-3.1-70b-512.json --detail action
validate $runs
validate $kernels
validate $collectives
validate tests/data/runs_cited.csv
validate tests/data/runs_odd.csv
validate tests/data/runs_fit_experts.csv
END
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
same=0 differ=0 number=0
while read -r line; do
    number=$((number + 1))
    for which in before after; do
        # shellcheck disable=SC2086
        (eval "set -- $(sed 's/[<>]/\\&/g' <<<"$line")"; "${!which}" "$@" --json 2>/dev/null) </dev/null >"$scratch/$which.raw"
        echo "exit $?" >>"$scratch/$which.raw"
        grep -vE '"(elapsed_s)": *[0-9.e+-]+,?$' \
            "$scratch/$which.raw" >"$scratch/$which"
    done
    if cmp -s "$scratch/before" "$scratch/after"; then
        same=$((same + 1))
    else
        differ=$((differ + 1))
        echo "$number: $line"
        diff "$scratch/before" "$scratch/after" | head -"${LINES_EACH:-6}"
    fi
done < <(commands)
echo "$same same, $differ differ"
[ "$differ" -eq 0 ]
