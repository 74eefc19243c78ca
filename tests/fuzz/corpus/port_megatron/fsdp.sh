#!/bin/bash
# Parameters sharded by Megatron's own FSDP, in replicas of 64 ranks.
set -e
N=16
unset CUDA_DEVICE_MAX_CONNECTIONS
torchrun --nnodes $N --nproc-per-node 8 pretrain_gpt.py \
    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 \
    --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm \
    --position-embedding-type rope --rotary-base 500000 --disable-bias-linear \
    --untie-embeddings-and-output-weights --max-position-embeddings 8192 \
    --seq-length 8192 --micro-batch-size 2 --global-batch-size 512 --bf16 \
    --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params \
    --use-distributed-optimizer --num-distributed-optimizer-instances 2 \
    --no-gradient-accumulation-fusion --grad-reduce-in-bf16 \
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
