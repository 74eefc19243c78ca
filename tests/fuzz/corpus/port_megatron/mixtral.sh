#!/bin/bash
#SBATCH --job-name=mixtral
#SBATCH --nodes=16
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8

# Eight experts of a Mixtral model, experts not split over tensors.
options=" \
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 \
    --num-attention-heads 32 --group-query-attention --num-query-groups 8 \
    --num-experts 8 --moe-router-topk 2 --moe-grouped-gemm \
    --moe-token-dispatcher-type alltoall --moe-aux-loss-coeff 1e-2 \
    --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 \
    --expert-model-parallel-size 8 --expert-tensor-parallel-size 1 --sequence-parallel \
    --use-distributed-optimizer --seq-length 4096 --max-position-embeddings 32768 \
    --micro-batch-size 1 --global-batch-size 256 --bf16 --swiglu \
    --normalization RMSNorm --position-embedding-type rope --rotary-base 1000000 \
    --disable-bias-linear --untie-embeddings-and-output-weights \
    --attention-dropout 0 --hidden-dropout 0 --tokenizer-model ${TOKENIZER}"

run_cmd="python -u pretrain_gpt.py ${options}"
srun -l --container-image=train.sqsh sh -c "${run_cmd}"
