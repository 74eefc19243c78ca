#!/bin/bash
# FP8 with current scaling, tensor parallelism in the node, weights in bf16.
set -x
NUM_NODES=2
export NVTE_FUSED_ATTN=1
srun --nodes=$NUM_NODES --ntasks-per-node=8 --gpus-per-node=8 bash -c "
  python3 -m MaxText.train MaxText/configs/base.yml \
    run_name=fp8_run hardware=gpu_multiprocess model_name=llama3.1-8b \
    ici_tensor_parallelism=2 ici_fsdp_parallelism=-1 dcn_data_parallelism=$NUM_NODES \
    per_device_batch_size=2 max_target_length=8192 gradient_accumulation_steps=2 \
    quantization=te_fp8_currentscaling weight_dtype=bfloat16 grad_dtype=bfloat16 \
    remat_policy=minimal_offloaded enable_checkpointing=false steps=15"
