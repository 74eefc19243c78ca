#include "exec/launch/environment.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char *const ms_launcher_names[] = {
    "none", "mpiexec", "torchrun", "srun", "a script (MESHSIM_RANK, MESHSIM_SIZE)", NULL};

/* Environment variables of a launcher. If `also` is not NULL, the launcher is recognized
 * only if variable `also` or `or_also` exists. */
typedef struct launcher_names {
    ms_launcher launcher;
    const char *rank, *size, *local_rank, *local_size;
    const char *also, *or_also;
} launcher_names;

/* Sources of the names: Open MPI, "mpirun" manual page; MPICH, PMI-1, src/pm/hydra;
 * PyTorch, torch/distributed/run.py; Slurm, "srun" manual page (salloc and sbatch set
 * SLURM_PROCID, too, but only srun sets SLURM_STEP_ID). */
static const launcher_names launchers[] = {
    /* Open MPI must be first: ms_launch.by_open_mpi is set for index 0 */
    {MS_LAUNCHER_MPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL, NULL},
    {MS_LAUNCHER_MPI, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL,
     NULL},
    {MS_LAUNCHER_TORCHRUN, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
     "LOCAL_RANK", "MASTER_ADDR"},
    {MS_LAUNCHER_SLURM, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL,
     "SLURM_STEP_ID", NULL},
    {MS_LAUNCHER_SCRIPT, "MESHSIM_RANK", "MESHSIM_SIZE", "MESHSIM_LOCAL_RANK",
     "MESHSIM_LOCAL_SIZE", NULL, NULL},
};

static long number_of_variable(const char *name)
{
    const char *text = getenv(name);
    if (text == NULL || *text < '0' || *text > '9')
        return -1;
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    return *end == '\0' && errno == 0 ? value : -1;
}

static bool has_also(const launcher_names *l)
{
    return l->also == NULL || getenv(l->also) != NULL ||
           (l->or_also != NULL && getenv(l->or_also) != NULL);
}

/* Tasks on a node by Slurm's list: "2(x3),1": 2 on nodes 0..2, 1 on node 3, then 0. */
static long tasks_of_node(const char *text, long node)
{
    while (text != NULL && *text >= '0' && *text <= '9') {
        char *end;
        long tasks = strtol(text, &end, 10), times = 1;
        if (end[0] == '(' && end[1] == 'x')
            times = strtol(end + 2, &end, 10);
        if (node < times)
            return tasks;
        node -= times;
        end += *end == ')';
        text = *end == ',' ? end + 1 : NULL;
    }
    return 0;
}

static long local_size(const launcher_names *names)
{
    if (names->launcher == MS_LAUNCHER_SLURM) {
        long node = number_of_variable("SLURM_NODEID");
        return node < 0 ? 0 : tasks_of_node(getenv("SLURM_STEP_TASKS_PER_NODE"), node);
    }
    long size = number_of_variable(names->local_size);
    return size > 0 ? size : 0;
}

ms_launch ms_launch_environment(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const launcher_names *l = &launchers[i];
        long rank = number_of_variable(l->rank), size = number_of_variable(l->size);
        if (has_also(l) && rank >= 0 && rank < size)
            return (ms_launch){l->launcher, rank,
                               size,        number_of_variable(l->local_rank),
                               i == 0,      local_size(l)};
    }
    return (ms_launch){MS_LAUNCHER_NONE, 0, 1, -1, false, 0};
}

static const char *value_text(ms_arena *arena, const char *name)
{
    const char *value = getenv(name);
    return value == NULL ? ms_arena_printf(arena, "%s is not set", name)
                         : ms_arena_printf(arena, "%s is \"%.40s\"", name, value);
}

const char *ms_launch_unclear(ms_arena *arena)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const launcher_names *l = &launchers[i];
        if (getenv(l->rank) == NULL)
            continue;
        const char *text = ms_arena_printf(arena, "%s, %s", value_text(arena, l->rank),
                                           value_text(arena, l->size));
        return has_also(l)
                   ? text
                   : ms_arena_printf(arena, "%s, %s", text, value_text(arena, l->also));
    }
    return NULL;
}

bool ms_launch_is_batch(void)
{
    return getenv("SLURM_PROCID") != NULL && getenv("SLURM_STEP_ID") == NULL;
}

bool ms_nccl_shares_gpus(void)
{
    return number_of_variable("NCCL_MULTI_RANK_GPU_ENABLE") > 0;
}

bool ms_nccl_has_default_buffers(void)
{
    return getenv("NCCL_BUFFSIZE") == NULL && getenv("NCCL_LL_BUFFSIZE") == NULL &&
           getenv("NCCL_LL128_BUFFSIZE") == NULL;
}

int ms_cuda_num_queues(void)
{
    long value = number_of_variable(MS_QUEUES_VARIABLE);
    return value > 0 && value <= INT_MAX ? (int)value : 0;
}
