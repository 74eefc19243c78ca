#!/bin/sh
# MFU in bf16 of the plan that `search` lists first, beside what a published run reached with as many devices, as long
# sequences and as large a batch. Both MFU count the FLOP of `predict` (docs/formulas 8.1): that of a published run is its
# tokens per second and device, relative to those of the found plan.
# Usage: docs/mfu.sh PROGRAM
set -eu
program=$1

# value_of KEY: the first number of that name in the output
value_of() {
    awk -F'[:,]' -v key="\"$1\"" '$1 ~ key { gsub(/ /, "", $2); print $2; exit }' "$work"
}

work=$(mktemp)
trap 'rm -f "$work"' EXIT
printf '%-14s %-13s %7s %6s %6s %8s %15s %9s  %s\n' model cluster devices seq batch 'MFU (%)' '90 % range (%)' published source
# model, cluster, stack, devices, sequence length, sequences of a step; tokens/s of a device and the source where one is published
while read -r model cluster stack devices seq batch published source; do
    "$program" search --model "$model" --cluster "$cluster" --stack "$stack" --gpus "$devices" --seq "$seq" --global-batch "$batch" \
        --top 1 --json --quiet > "$work"
    printf '%s %s %s %s %s %s %s %s %s %s %s %s\n' "$model" "$cluster" "$devices" "$seq" "$batch" "$(value_of mfu_frac)" "$(value_of step_s)" \
        "$(value_of step_s_low)" "$(value_of step_s_high)" "$(value_of tokens_per_s_per_gpu)" "$published" "$source"
done <<'RUNS' | awk '{
    shown = $11 == "-" ? "-" : sprintf("%.1f", 100 * $6 * $11 / $10)
    source = ""
    for (i = 12; i <= NF; i++) source = source " " $i
    printf "%-14s %-13s %7s %6s %6s %8.1f %15s %9s %s\n", $1, $2, $3, $4, $5, 100 * $6,
        sprintf("%.0f to %.0f", 100 * $6 * $7 / $9, 100 * $6 * $7 / $8), shown, source }'
llama-3.1-8b hgx-a100-80g megatron 64 8192 1024 -
llama-3.1-8b hgx-h100 megatron 64 8192 1024 10082.45 NVIDIA dgxc-benchmarking (dgx-004)
llama-3.1-8b hgx-h200 megatron 8 8192 8 8439.75 ml-engineering (mle-013)
llama-3.1-8b hgx-b200 megatron 8 8192 8 14243.2 ml-engineering (mle-015)
llama-3.1-8b gb200-nvl72 megatron 64 8192 1024 -
llama-3.1-8b mi300x torchtitan 8 8192 8 5376.5 torchao (ao-004)
llama-3.1-8b tpu-v5p maxtext 64 8192 1024 -
llama-2-70b hgx-a100-80g megatron 128 4096 256 410 IBM fms-fsdp (fms-007)
llama-3.1-70b hgx-h100 megatron 512 8192 1024 1055.74 NVIDIA dgxc-benchmarking (dgx-091)
llama-3.1-70b hgx-h200 megatron 512 8192 1024 -
llama-3.1-70b hgx-b200 megatron 512 8192 1024 -
llama-3.1-70b gb200-nvl72 megatron 512 8192 1024 -
llama-3.1-70b mi300x megatron 512 8192 1024 -
llama-2-70b tpu-v5p maxtext 512 4096 2048 692 MaxText (mx-012, batch not stated)
llama-3.1-405b hgx-a100-80g megatron 1024 8192 512 -
llama-3.1-405b hgx-h100 megatron 1152 8192 504 203.64 NVIDIA dgxc-benchmarking (dgx-027)
llama-3.1-405b hgx-h200 megatron 1024 8192 512 -
llama-3.1-405b hgx-b200 megatron 1024 8192 512 -
llama-3.1-405b gb200-nvl72 megatron 512 8192 256 430.79 NVIDIA dgxc-benchmarking (dgx-101)
llama-3.1-405b mi300x megatron 1024 8192 512 -
llama-3.1-405b tpu-v5p maxtext 1024 8192 512 -
deepseek-v3 hgx-a100-80g megatron 1024 4096 8192 -
deepseek-v3 hgx-h100 megatron 1024 4096 8192 629.67 NVIDIA dgxc-benchmarking (dgx-122)
deepseek-v3 hgx-h200 megatron 1024 4096 8192 -
deepseek-v3 hgx-b200 megatron 1024 4096 8192 -
deepseek-v3 gb200-nvl72 megatron 256 4096 2048 958.3 NVIDIA dgxc-benchmarking (dgx-124)
deepseek-v3 mi300x megatron 1024 4096 8192 -
deepseek-v3 tpu-v5p maxtext 1024 4096 8192 -
mixtral-8x7b hgx-a100-80g megatron 128 4096 1024 -
mixtral-8x7b hgx-h100 megatron 128 4096 1024 -
mixtral-8x7b hgx-h200 megatron 128 4096 1024 -
mixtral-8x7b hgx-b200 megatron 128 4096 1024 -
mixtral-8x7b gb200-nvl72 megatron 128 4096 1024 -
mixtral-8x7b mi300x megatron 128 4096 1024 -
mixtral-8x7b tpu-v5p maxtext 128 4096 1024 -
RUNS
