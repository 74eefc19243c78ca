#!/bin/bash
# Llama 2 of 70 B parameters on four slices of 64 chips: data parallelism over the data
# centre's network, everything else within a slice.
set -euo pipefail

RUN_NAME=${1:-"llama2-70b-$(date +%m%d)"}
OUTPUT=gs://my-bucket/runs
PER_DEVICE_BATCH=2

export LIBTPU_INIT_ARGS="--xla_tpu_enable_async_collective_fusion=true --xla_enable_async_all_gather=true"

xpk workload create \
    --cluster "$CLUSTER" --workload llama2-70b --tpu-type v5p-128 --num-slices 4 \
    --docker-image maxtext_base_image \
    --command "python3 -m maxtext.trainers.pre_train.train src/maxtext/configs/base.yml \
        run_name=${RUN_NAME} base_output_directory=${OUTPUT} \
        model_name=llama2-70b dataset_path=gs://my-bucket/c4 \
        dcn_data_parallelism=4 ici_fsdp_parallelism=16 ici_tensor_parallelism=4 \
        per_device_batch_size=${PER_DEVICE_BATCH} max_target_length=4096 \
        remat_policy=full steps=500 enable_checkpointing=false"
