#!/bin/bash
# 128 k tokens by context parallelism, keys and values passed around.
GPUS=256
CP=8
TP=4
torchrun --nnodes $((GPUS / 8)) --nproc_per_node 8 pretrain_gpt.py \
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
  --group-query-attention --num-query-groups 8 --kv-channels 128 --swiglu \
  --normalization RMSNorm --position-embedding-type rope --rotary-base 500000 \
  --use-rope-scaling --disable-bias-linear --untie-embeddings-and-output-weights \
  --max-position-embeddings 131072 --seq-length 131072 \
  --tensor-model-parallel-size $TP --context-parallel-size $CP --cp-comm-type p2p \
  --sequence-parallel --tp-comm-overlap \
  --micro-batch-size 1 --global-batch-size $((GPUS / (CP * TP) * 4)) \
  --bf16 --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
  --attention-dropout 0 --hidden-dropout 0 --seed ${SEED:-1234}
