#!/bin/bash
# 126 layers on 16 stages, of which the first and the last have 7.
readonly NODE_COUNT=128
NP=8
WORLD_SIZE=$((NODE_COUNT * NP))
declare -a ARGS
ARGS=(--num-layers 126 --hidden-size 16384 --ffn-hidden-size 53248)
ARGS+=(--num-attention-heads 128 --group-query-attention --num-query-groups 8)
ARGS+=(--swiglu --normalization RMSNorm --position-embedding-type rope)
ARGS+=(--rotary-base 500000 --disable-bias-linear --untie-embeddings-and-output-weights)
ARGS+=(--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16)
ARGS+=(--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split)
ARGS+=(--sequence-parallel --use-distributed-optimizer --bf16)
ARGS+=(--seq-length 8192 --micro-batch-size 1 --global-batch-size "$((WORLD_SIZE * 2))")
cd /workspace && torchrun --nnodes "$NODE_COUNT" --nproc-per-node "$NP" \
    pretrain_gpt.py "${ARGS[@]}" > train.log 2>&1 &
wait
