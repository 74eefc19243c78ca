# A small model with almost nothing said: Megatron's own defaults.
OMP_NUM_THREADS=1 torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 24 \
    --hidden-size 2048 --num-attention-heads 16 --seq-length 1024 \
    --max-position-embeddings 1024 --micro-batch-size 4 --bf16 --no-bias-gelu-fusion
