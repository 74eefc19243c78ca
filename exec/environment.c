#include "exec/environment.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char *const ms_launcher_names[] = {"none",  "mpi",  "torchrun",
                                         "slurm", "hand", NULL};

/* `also`, where there are any, tell this launcher from others that set the same variables. */
typedef struct launcher_names {
    ms_launcher launcher;
    const char *rank, *size, *local_rank, *local_size;
    const char *also[2];
} launcher_names;

/* Open MPI: "mpirun" manual page, environment variables; MPICH: PMI-1, src/pm/hydra; PyTorch:
 * torch/distributed/run.py; Slurm: "srun" manual page, output environment variables: salloc and
 * sbatch set SLURM_PROCID but for srun no SLURM_STEP_ID. */
static const launcher_names launchers[] = {
    /* Open MPI first */
    {MS_LAUNCHER_MPI,
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {NULL}},
    {MS_LAUNCHER_MPI,
     "PMI_RANK",
     "PMI_SIZE",
     "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS",
     {NULL}},
    {MS_LAUNCHER_TORCHRUN,
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     {"LOCAL_RANK", "MASTER_ADDR"}},
    {MS_LAUNCHER_SLURM,
     "SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_LOCALID",
     NULL,
     {"SLURM_STEP_ID"}},
    {MS_LAUNCHER_HAND,
     "MESHSIM_RANK",
     "MESHSIM_SIZE",
     "MESHSIM_LOCAL_RANK",
     "MESHSIM_LOCAL_SIZE",
     {NULL}},
};

#define STORE_VARIABLE "MESHSIM_STORE"

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

static bool is_set(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0';
}

static bool has_any(const char *const names[2])
{
    return names[0] == NULL || getenv(names[0]) != NULL ||
           (names[1] != NULL && getenv(names[1]) != NULL);
}

/* "2(x3),1": tasks of the nodes of a step, one after the other, equal ones together. */
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
        long node = number("SLURM_NODEID");
        return node < 0 ? 0 : tasks_of_node(getenv("SLURM_STEP_TASKS_PER_NODE"), node);
    }
    long size = number(names->local_size);
    return size > 0 ? size : 0;
}

ms_launch ms_launch_environment(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const launcher_names *l = &launchers[i];
        long rank = number(l->rank), size = number(l->size);
        if (has_any(l->also) && rank >= 0 && rank < size)
            return (ms_launch){l->launcher,           rank,   size,
                               number(l->local_rank), i == 0, local_size(l)};
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
        bool is_own = l->launcher == MS_LAUNCHER_HAND &&
                      (is_set(l->size) || is_set(STORE_VARIABLE));
        if (getenv(l->rank) == NULL && !is_own)
            continue;
        const char *text = ms_arena_printf(arena, "%s, %s", value_text(arena, l->rank),
                                           value_text(arena, l->size));
        const char *also = l->also[0];
        if (l->launcher == MS_LAUNCHER_HAND && is_set(STORE_VARIABLE))
            also = STORE_VARIABLE;
        return also == NULL || (also == l->also[0] && has_any(l->also))
                   ? text
                   : ms_arena_printf(arena, "%s, %s", text, value_text(arena, also));
    }
    return NULL;
}

bool ms_launch_is_batch(void)
{
    return getenv("SLURM_PROCID") != NULL && getenv("SLURM_STEP_ID") == NULL;
}

bool ms_launch_meeting_point(ms_meeting_point *out)
{
    const char *taken = getenv("TORCHELASTIC_USE_AGENT_STORE");
    *out = (ms_meeting_point){
        .address = getenv("MASTER_ADDR"), .port = number("MASTER_PORT"), .file = NULL};
    if (taken != NULL && strcmp(taken, "True") == 0)
        out->port++;
    return out->address != NULL && out->address[0] != '\0' && out->port > 0 &&
           out->port < 65536;
}

/* "node[003-010,12],other": node003. */
static const char *first_host(ms_arena *arena, const char *list)
{
    char *host = ms_arena_strdup(arena, list);
    size_t length = 0;
    while (*list != '\0' && *list != ',') {
        if (*list != '[') {
            host[length++] = *list++;
            continue;
        }
        size_t digits = strspn(++list, "0123456789");
        memcpy(host + length, list, digits);
        length += digits;
        list += strcspn(list, "]");
        list += *list == ']';
    }
    host[length] = '\0';
    return host;
}

#define SLURM_FIRST_PORT 20000L /* below those that systems choose themselves */
#define SLURM_PORTS      10000L
#define SLURM_STEPS      16L /* of a job, that do not share ports with the next job */

static long slurm_port(void)
{
    long job = number("SLURM_JOB_ID"), step = number("SLURM_STEP_ID");
    if (job < 0 || step < 0)
        return -1;
    return SLURM_FIRST_PORT + (job % SLURM_PORTS * SLURM_STEPS + step) % SLURM_PORTS;
}

static bool slurm_meeting_point(ms_arena *arena, ms_meeting_point *out)
{
    const char *list = getenv(is_set("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST"
                                                            : "SLURM_JOB_NODELIST");
    if (!is_set("MASTER_ADDR") && list != NULL)
        out->address = first_host(arena, list);
    if (!is_set("MASTER_PORT"))
        out->port = slurm_port();
    return out->address != NULL && out->address[0] != '\0' && out->port > 0 &&
           out->port < 65536;
}

/* Both a launcher and MESHSIM_RANK may say which rank this is. */
static ms_status check_hand(ms_ctx *cx, const ms_launch *launch)
{
    const launcher_names *hand = &launchers[sizeof launchers / sizeof *launchers - 1];
    if (launch->launcher == MS_LAUNCHER_HAND ||
        (!is_set(hand->rank) && !is_set(hand->size)) ||
        (number(hand->rank) == launch->rank && number(hand->size) == launch->size))
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s, %s, but %s started this as rank %ld of %ld",
            value_text(cx->arena, hand->rank), value_text(cx->arena, hand->size),
            ms_launcher_names[launch->launcher], launch->rank, launch->size);
    ms_hint(cx, "leave %s and %s to ranks that are started by hand", hand->rank,
            hand->size);
    return MS_EINPUT;
}

ms_status ms_launch_meeting(ms_ctx *cx, const ms_launch *launch, ms_meeting_point *out)
{
    MS_TRY(check_hand(cx, launch));
    if (is_set(STORE_VARIABLE)) {
        *out = (ms_meeting_point){.file = getenv(STORE_VARIABLE)};
        return MS_OK;
    }
    bool is_known = ms_launch_meeting_point(out);
    if (!is_known && launch->launcher == MS_LAUNCHER_SLURM)
        is_known = slurm_meeting_point(cx->arena, out);
    if (is_known)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "started as rank %ld of %ld, but nothing says where ranks meet: %s, %s, %s",
            launch->rank, launch->size, value_text(cx->arena, "MASTER_ADDR"),
            value_text(cx->arena, "MASTER_PORT"), value_text(cx->arena, STORE_VARIABLE));
    ms_hint(cx, "set MASTER_ADDR and MASTER_PORT, or %s to a file that all ranks see",
            STORE_VARIABLE);
    return MS_EINPUT;
}

const char *ms_temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder == NULL || folder[0] == '\0' ? "/tmp" : folder;
}

bool ms_nccl_shares_gpus(void)
{
    return number("NCCL_MULTI_RANK_GPU_ENABLE") > 0;
}
