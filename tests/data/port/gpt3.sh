#!/bin/sh
# GPT-3 as it was trained first: learned positions, LayerNorm, biases, no sharded optimizer.
DISTRIBUTED_ARGS="--nproc_per_node 8 --nnodes 12 --node_rank 0 --master_addr 10.0.0.1 --master_port 6000"
GPT_ARGS="
    --tensor-model-parallel-size 8
    --pipeline-model-parallel-size 12
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --micro-batch-size 1
    --global-batch-size 1536
    --lr 0.00006 --train-iters 500000 --fp16
"
python -m torch.distributed.launch $DISTRIBUTED_ARGS pretrain_gpt.py $GPT_ARGS \
    --vocab-file gpt2-vocab.json --rampup-batch-size 32 32 1953125 \
    --recompute-granularity full --recompute-method block --recompute-num-layers 2
