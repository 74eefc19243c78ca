#!/bin/bash
#SBATCH --job-name=maxtext-70b
#SBATCH --nodes=8
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH --exclusive

# FSDP within nodes and over them; GPUs of a node are a slice.
export XLA_FLAGS="--xla_gpu_enable_latency_hiding_scheduler=true --xla_gpu_enable_triton_gemm=false"
export XLA_PYTHON_CLIENT_MEM_FRACTION=0.92
CONTAINER=ghcr.io/nvidia/jax:maxtext
NODES=${SLURM_NNODES:-8}

srun --container-image=$CONTAINER --mpi=pmix \
    python3 /opt/maxtext/MaxText/train.py /opt/maxtext/MaxText/configs/base.yml \
        run_name=logdir hardware=gpu_multiprocess model_name=llama3.1-70b \
        attention=cudnn_flash_te dataset_type=synthetic scan_layers=true \
        base_output_directory=/results \
        dcn_data_parallelism=1 dcn_fsdp_parallelism=8 ici_fsdp_parallelism=8 \
        per_device_batch_size=1 gradient_accumulation_steps=4 \
        max_target_length=8192 remat_policy=save_dot_with_context_except_mlp \
        steps=20 logits_dot_in_fp32=false enable_goodput_recording=false \
    2>&1 | tee "train-${SLURM_JOB_ID}.log"
