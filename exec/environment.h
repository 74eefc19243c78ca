/* What the launcher that started this process says about it, from environment variables alone:
 * nothing is initialised. */
#ifndef MS_EXEC_ENVIRONMENT_H
#define MS_EXEC_ENVIRONMENT_H

#include <stdbool.h>

typedef enum ms_launcher {
    MS_LAUNCHER_NONE,
    MS_LAUNCHER_MPI, /* Open MPI's mpiexec (OMPI_COMM_WORLD_*), MPICH's and Slurm's with PMI (PMI_*) */
    MS_LAUNCHER_TORCHRUN, /* RANK, WORLD_SIZE and LOCAL_RANK */
    MS_LAUNCHER_SLURM,    /* srun: SLURM_PROCID, SLURM_NTASKS, within a step */
    MS_NUM_LAUNCHERS
} ms_launcher;
extern const char *const ms_launcher_names[]; /* "none" "mpi" "torchrun" "slurm", NULL */

typedef struct ms_launch {
    ms_launcher launcher;
    long rank, size;  /* 0 of 1 without a launcher */
    long local_rank;  /* on its node; -1: not said */
    bool by_open_mpi; /* its own mpiexec */
} ms_launch;

/* The first launcher, in the order above, of which both rank and size are whole numbers with 0 <=
 * rank < size. A batch script of Slurm's, outside of srun, is none. */
ms_launch ms_launch_environment(void);

#endif
