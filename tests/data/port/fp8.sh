#!/bin/bash
# FP8 with parameters gathered in FP8, moments in 16 bits, the first and last rank shorter.
EXTRA=""
if [ -n "$PROFILE" ]; then
    EXTRA="--profile --profile-step-start 10"
fi
torchrun --nnodes=8 --nproc-per-node=8 pretrain_gpt.py \
    --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 \
    --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm \
    --position-embedding-type rope --rotary-base 500000 --rope-scaling-factor 8 \
    --use-rope-scaling --disable-bias-linear --untie-embeddings-and-output-weights \
    --seq-length 8192 --max-position-embeddings 131072 --micro-batch-size 1 \
    --global-batch-size 128 --tensor-model-parallel-size 4 \
    --pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 19 \
    --decoder-last-pipeline-num-layers 19 --sequence-parallel --bf16 \
    --fp8-format hybrid --fp8-recipe tensorwise --fp8-param-gather \
    --use-distributed-optimizer --use-precision-aware-optimizer --exp-avg-dtype bf16 \
    --exp-avg-sq-dtype bf16 --ddp-bucket-size 40000000 --cross-entropy-loss-fusion $EXTRA
