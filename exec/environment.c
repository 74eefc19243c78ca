#include "exec/environment.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

const char *const ms_launcher_names[] = {"none", "mpi", "torchrun", "slurm", NULL};

/* `also`, where there is one, tells this launcher from others that set the same variables. */
typedef struct launcher_names {
    ms_launcher launcher;
    const char *rank, *size, *local_rank, *also;
} launcher_names;

/* Open MPI: "mpirun" manual page, environment variables; MPICH: PMI-1, src/pm/hydra; PyTorch:
 * torch/distributed/run.py; Slurm: "srun" manual page, output environment variables: salloc and
 * sbatch set SLURM_PROCID but for srun no SLURM_STEP_ID. */
static const launcher_names launchers[] = {
    /* Open MPI first */
    {MS_LAUNCHER_MPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", NULL},
    {MS_LAUNCHER_MPI, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", NULL},
    {MS_LAUNCHER_TORCHRUN, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_RANK"},
    {MS_LAUNCHER_SLURM, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID"},
};

static long number(const char *name)
{
    const char *text = getenv(name);
    if (text == NULL || *text < '0' || *text > '9')
        return -1;
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    return *end == '\0' && errno == 0 ? value : -1;
}

ms_launch ms_launch_environment(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const launcher_names *l = &launchers[i];
        long rank = number(l->rank), size = number(l->size);
        bool is_it = l->also == NULL || getenv(l->also) != NULL;
        if (is_it && rank >= 0 && rank < size)
            return (ms_launch){l->launcher, rank, size, number(l->local_rank), i == 0};
    }
    return (ms_launch){MS_LAUNCHER_NONE, 0, 1, -1, false};
}
