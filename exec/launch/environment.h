/* Rank and size of this process by the environment variables of its launcher. */
#ifndef MS_EXEC_LAUNCH_ENVIRONMENT_H
#define MS_EXEC_LAUNCH_ENVIRONMENT_H

#include "base/diag.h"

#include <stdbool.h>

typedef enum ms_launcher {
    MS_LAUNCHER_NONE,
    /* mpiexec of Open MPI (OMPI_COMM_WORLD_*) or MPICH, or srun with PMI */
    MS_LAUNCHER_MPI,
    MS_LAUNCHER_TORCHRUN, /* RANK, WORLD_SIZE, and LOCAL_RANK or MASTER_ADDR */
    MS_LAUNCHER_SLURM,    /* srun: SLURM_PROCID and SLURM_NTASKS within a job step */
    MS_LAUNCHER_SCRIPT,   /* a user's script: MESHSIM_RANK and MESHSIM_SIZE */
    MS_NUM_LAUNCHERS
} ms_launcher;
/* Launchers' names for messages: "none" "mpiexec" "torchrun" ..., ended by NULL. */
extern const char *const ms_launcher_names[];

typedef struct ms_launch {
    ms_launcher launcher;
    long rank, size;  /* rank 0 of size 1 without a launcher */
    long local_rank;  /* rank on its node; -1 if unknown */
    bool by_open_mpi; /* started by Open MPI's own mpiexec */
    long local_size;  /* number of ranks on its node; 0 if unknown */
} ms_launch;

/* First launcher whose variables give 0 <= rank < size; none in Slurm's batch script. */
ms_launch ms_launch_environment(void);

/* Note on a launcher's incomplete or invalid variables, in the arena: "RANK is 1,
 * WORLD_SIZE is not set"; NULL if there are none. */
const char *ms_launch_unclear(ms_arena *arena);

/* Whether this process is Slurm's batch script, which has rank 0 but no job step. */
bool ms_launch_is_batch(void);

/* Whether NCCL_MULTI_RANK_GPU_ENABLE lets ranks share a GPU (NCCL 2.30 and later). */
bool ms_nccl_shares_gpus(void);
/* Whether the environment sets none of NCCL's sizes of buffers (NCCL_BUFFSIZE,
 * NCCL_LL_BUFFSIZE, NCCL_LL128_BUFFSIZE). */
bool ms_nccl_has_default_buffers(void);

/* Number of hardware queues that CUDA gives the streams of a process: the value of
 * CUDA_DEVICE_MAX_CONNECTIONS; 0 if it is not set or no number. */
#define MS_QUEUES_VARIABLE "CUDA_DEVICE_MAX_CONNECTIONS"
int ms_cuda_num_queues(void);

#endif
