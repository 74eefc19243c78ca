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
    /* MESHSIM_RANK and MESHSIM_SIZE, with MESHSIM_LOCAL_RANK and MESHSIM_LOCAL_SIZE */
    MS_LAUNCHER_HAND,
    MS_NUM_LAUNCHERS
} ms_launcher;
/* "none" "mpi" "torchrun" "slurm" "hand", NULL */
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

typedef struct ms_meeting_point {
    const char *address; /* of the environment */
    long port;
    const char *file; /* that all ranks see, instead of an address; NULL: none */
} ms_meeting_point;

/* Where rank 0 of torchrun listens for the others: MASTER_ADDR and MASTER_PORT, or the
 * port after it where torchrun keeps a store of its own at this one
 * (TORCHELASTIC_USE_AGENT_STORE). False: not said. */
bool ms_launch_meeting_point(ms_meeting_point *out);

/* Where ranks meet that no MPI brings together: (1) the file that MESHSIM_STORE names;
 * (2) the address above; (3) of a step of Slurm's, the first node of SLURM_STEP_NODELIST
 * (else SLURM_JOB_NODELIST), where task 0 is unless --distribution=arbitrary puts it
 * elsewhere, and port 20000 + (16 job + step) mod 10000 of SLURM_JOB_ID and
 * SLURM_STEP_ID; MASTER_ADDR or MASTER_PORT, if one of them is set, in its place.
 * SLURM_LAUNCH_NODE_IPADDR is where srun was called, which may be a login node, and so is
 * not asked for. MS_EINPUT: nothing says where, or MESHSIM_RANK and MESHSIM_SIZE
 * contradict the launcher. Lives in the arena. */
ms_status ms_launch_meeting(ms_ctx *cx, const ms_launch *launch, ms_meeting_point *out);

/* $TMPDIR, or /tmp where that is not set. */
const char *ms_temporary_folder(void);

/* "RANK is 1, WORLD_SIZE is not set": variables of a launcher that is not recognised from
 * them, for a note; NULL: there are none. Those that begin with MESHSIM_ are the
 * program's own. Lives in the arena. */
const char *ms_launch_unclear(ms_arena *arena);

/* Whether this is Slurm's batch script, which has a rank (0) without a step. */
bool ms_launch_is_batch(void);

/* Whether NCCL_MULTI_RANK_GPU_ENABLE, by which NCCL of 2.30 and later lets ranks share a
 * GPU, is a number other than 0. */
bool ms_nccl_shares_gpus(void);

#endif
