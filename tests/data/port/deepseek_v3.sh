# Latent attention and 256 experts on 128 nodes; stages by a layout.
NODES=${NODES:-128}
ARGS="--num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128"
ARGS="$ARGS --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128"
ARGS="$ARGS --qk-pos-emb-head-dim 64 --v-head-dim 128 --qk-layernorm"
ARGS+=" --num-experts 256 --moe-layer-freq ([0]*3+[1]*58) --moe-router-topk 8"
ARGS+=" --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048"
ARGS+=" --moe-router-score-function sigmoid --moe-router-enable-expert-bias"
ARGS+=" --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep"
ARGS+=" --swiglu --normalization RMSNorm --norm-epsilon 1e-6 --disable-bias-linear"
ARGS+=" --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0"
torchrun --nproc-per-node=8 --nnodes=$NODES --rdzv-backend=c10d pretrain_gpt.py $ARGS \
    --pipeline-model-parallel-size 16 --expert-model-parallel-size 64 \
    --pipeline-model-parallel-layout 'Et*4|(t*4|)*14tL' \
    --seq-length 4096 --micro-batch-size 1 --global-batch-size=8192 \
    --bf16 --fp8-format e4m3 --fp8-recipe blockwise --use-distributed-optimizer \
    --recompute-granularity selective --recompute-modules mla_up_proj moe_act layernorm
