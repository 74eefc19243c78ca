/* What the launcher that started this process says about it, from environment variables alone:
 * nothing is initialised. */
#ifndef MS_EXEC_ENVIRONMENT_H
#define MS_EXEC_ENVIRONMENT_H

#include "base/diag.h"

#include <stdbool.h>

typedef enum ms_launcher {
    MS_LAUNCHER_NONE,
    /* Open MPI's mpiexec (OMPI_COMM_WORLD_*), MPICH's and Slurm's with PMI (PMI_*) */
    MS_LAUNCHER_MPI,
    MS_LAUNCHER_TORCHRUN, /* RANK and WORLD_SIZE, with LOCAL_RANK or MASTER_ADDR */
    MS_LAUNCHER_SLURM,    /* srun: SLURM_PROCID, SLURM_NTASKS, within a step */
    MS_LAUNCHER_SCRIPT,   /* MESHSIM_RANK and MESHSIM_SIZE */
    MS_NUM_LAUNCHERS
} ms_launcher;
/* "none" "mpiexec" "torchrun" "srun" ..., for messages; NULL */
extern const char *const ms_launcher_names[];

typedef struct ms_launch {
    ms_launcher launcher;
    long rank, size;  /* 0 of 1 without a launcher */
    long local_rank;  /* on its node; -1: not said */
    bool by_open_mpi; /* its own mpiexec */
    long local_size;  /* ranks on its node; 0: not said */
} ms_launch;

/* The first launcher, in the order above, of which both rank and size are whole numbers with 0 <=
 * rank < size. A batch script of Slurm's, outside of srun, is none. */
ms_launch ms_launch_environment(void);

/* "RANK is 1, WORLD_SIZE is not set": variables of a launcher that is not recognised from
 * them, for a note; NULL: there are none. Lives in the arena. */
const char *ms_launch_unclear(ms_arena *arena);

/* Whether this is Slurm's batch script, which has a rank (0) without a step. */
bool ms_launch_is_batch(void);

/* Whether NCCL_MULTI_RANK_GPU_ENABLE, by which NCCL of 2.30 and later lets ranks share a
 * GPU, is a number other than 0. */
bool ms_nccl_shares_gpus(void);

#endif
