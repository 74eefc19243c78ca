#!/bin/bash
# Mixtral 8x7B on four nodes; an expert a GPU, parameters sharded over nodes too.
MODEL=mixtral-8x7b
NODES=4
ARGS="run_name=moe-${MODEL} model_name=${MODEL} hardware=gpu_multiprocess"
ARGS="${ARGS} ici_expert_parallelism=8 ici_fsdp_parallelism=1"
ARGS="${ARGS} dcn_fsdp_parallelism=${NODES} dcn_data_parallelism=1"
ARGS="${ARGS} per_device_batch_size=2 max_target_length=4096"
ARGS="${ARGS} sparse_matmul=True megablox=False load_balance_loss_weight=0.02"
ARGS="${ARGS} remat_policy=minimal weight_dtype=float32 dtype=bfloat16 opt_type=adam_pax"
ARGS="${ARGS} tokenizer_path=assets/tokenizer.mistral-v1 packing=true steps=100"

srun -N ${NODES} --ntasks-per-node=8 --gpus-per-node=8 \
    python3 -m maxtext.trainers.pre_train.train configs/base.yml $ARGS
