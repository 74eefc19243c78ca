#include "cli/cmd/run_backend.h"

#include "cli/options/output.h"
#include "exec/backends/backends.h"
#include "exec/backends/modelled.h"
#include "exec/launch/launch.h"
#include "exec/measure/measure.h"

#include <string.h>

/* ---- ranks started by a launcher ---- */

bool ms_run_launcher_has_mpi(const ms_launch *env)
{
    return env->launcher == MS_LAUNCHER_MPI || env->launcher == MS_LAUNCHER_SLURM;
}

/* Refuses processes that cannot communicate: each would train the whole model alone and
 * overwrite the files of the others. */
static ms_status refuse_launcher(ms_ctx *cx, const ms_launch *env)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "%s started this process as rank %ld of %ld, but ranks in several processes "
            "need MPI%s",
            ms_launcher_names[env->launcher], env->rank, env->size,
            ms_run_launcher_has_mpi(env) ? ", which this build does not have" : "");
    return ms_hint(
        cx,
        "start them by mpirun -n %ld or srun --mpi=pmix -n %ld, with a program built "
        "with MPI; on one machine start one process: its ranks are threads",
        env->size, env->size);
}

/* Whether this process is the run's only one and not an MPI job (of one rank). */
static bool is_alone(const ms_launch *env)
{
    return env->size == 1 &&
           (env->launcher != MS_LAUNCHER_MPI || ms_mpi_backend() == NULL);
}

static ms_status no_backend(ms_ctx *cx, const char *name, const char *instead)
{
    ms_fail(cx, MS_EIO, MS_NOWHERE, "this build has no backend %s", name);
    return ms_hint(
        cx, "--backend %s; \"meshsim info\" lists what was found when it was built",
        instead);
}

/* Finds the backend cuda and a usable GPU, before anything else is prepared. */
static ms_status find_gpus(ms_ctx *cx)
{
    const ms_cuda_driver *driver = ms_cuda_driver_of_libraries();
    int num;
    if (ms_cuda_backend_by(MS_CUDA_BY_NCCL) == NULL || driver == NULL)
        return no_backend(cx, "cuda", "loop");
    ms_status status = driver->find(cx, &num);
    if (status != MS_OK)
        ms_hint(cx, "--backend loop needs no GPU");
    return status;
}

static const ms_backend *find_backend(const ms_run_flags *flags)
{
    return flags->backend.value == MS_BACKEND_CUDA
               ? ms_cuda_backend_by((ms_cuda_transport)flags->transport.value)
               : ms_backend_find(ms_backend_names[flags->backend.value]);
}

static ms_status choose_inside(ms_ctx *cx, const ms_run_flags *flags, const ms_plan *plan,
                               ms_run_choice *out)
{
    const ms_launch *env = &out->environment;
    const char *name = ms_backend_names[flags->backend.value];
    const ms_backend *named = find_backend(flags);
    bool in_process = named != NULL && named->in_process;
    if (in_process && env->size > 1) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--backend %s has all ranks in one process, but %ld were started", name,
                env->size);
        return ms_hint(cx, "--backend mpi, or start one process only");
    }
    if (!in_process && env->size != plan->gpus) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "%ld ranks were started, but the plan has %ld, the product of its axes",
                env->size, plan->gpus);
        return ms_hint(
            cx, "mpirun -n %ld, or other axes; without mpirun, run starts its own ranks",
            plan->gpus);
    }
    if (env->size > 1 && ms_mpi_backend() == NULL)
        return refuse_launcher(cx, env);
    out->backend = flags->backend.value == MS_BACKEND_AUTO ? ms_mpi_backend() : named;
    return MS_OK;
}

/* ---- the only process ---- */

static ms_status choose_mpi(ms_ctx *cx, ms_run_choice *out)
{
    out->backend = ms_backend_find("mpi");
    out->mpiexec = ms_launch_find(cx->arena);
    if (out->backend == NULL)
        return no_backend(cx, "mpi", "loop");
    if (out->mpiexec != NULL)
        return MS_OK;
    ms_fail(cx, MS_EIO, MS_NOWHERE, "there is no mpiexec in $PATH to start the ranks");
    return ms_hint(cx, "--backend loop needs none");
}

static void choose_any(ms_ctx *cx, const ms_plan *plan, ms_run_choice *out)
{
    const ms_backend *mpi = ms_backend_find("mpi");
    const char *mpiexec = ms_launch_find(cx->arena);
    out->backend = ms_backend_find("loop");
    if (plan->gpus == 1)
        return;
    if (mpi == NULL) {
        ms_note(cx, "backend loop, one thread per rank: this build has no MPI");
    } else if (mpiexec == NULL) {
        ms_note(cx, "backend loop, one thread per rank: there is no mpiexec in $PATH");
    } else {
        out->backend = mpi;
        out->mpiexec = mpiexec;
    }
}

/* Prints a note on environment variables that are like a launcher's but name none. */
static void note_unclear(ms_ctx *cx, const ms_launch *env)
{
    const char *unclear = ms_launch_unclear(cx->arena);
    if (env->launcher != MS_LAUNCHER_NONE || unclear == NULL)
        return;
    bool is_batch = strncmp(unclear, "SLURM_", 6) == 0 && ms_launch_is_batch();
    ms_note(cx, "%s: %s, so this is the only process", unclear,
            is_batch ? "Slurm's batch script and no step of srun"
                     : "no launcher is known that sets these");
}

/* Replays need no other rank: backend loop's kernels in this process. */
static ms_status choose_replay(ms_ctx *cx, const ms_run_flags *flags, ms_run_choice *out)
{
    int backend = flags->backend.value;
    bool on_gpu = backend == MS_BACKEND_CUDA;
    out->backend = on_gpu ? ms_cuda_backend_by(MS_CUDA_MODELLED) : &ms_backend_modelled;
    if (out->environment.size > 1)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--replay needs one process, but %ld were started",
                       out->environment.size);
    if (on_gpu)
        return find_gpus(cx);
    if (backend == MS_BACKEND_AUTO || backend == MS_BACKEND_LOOP)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "backend %s replays no single rank",
            ms_backend_names[backend]);
    return ms_hint(cx, "--backend loop and cuda do");
}

ms_status ms_run_choose(ms_ctx *cx, const ms_run_flags *flags, const ms_plan *plan,
                        ms_run_choice *out)
{
    *out = (ms_run_choice){.environment = ms_launch_environment()};
    const ms_launch *env = &out->environment;
    note_unclear(cx, env);
    if (flags->replay != NULL)
        return choose_replay(cx, flags, out);
    if (env->size > 1 && !ms_run_launcher_has_mpi(env))
        return refuse_launcher(cx, env);
    if (flags->backend.value == MS_BACKEND_CUDA)
        MS_TRY(find_gpus(cx));
    if (!is_alone(env))
        return choose_inside(cx, flags, plan, out);
    if (flags->backend.value == MS_BACKEND_MPI)
        return choose_mpi(cx, out);
    if (flags->backend.value == MS_BACKEND_AUTO) {
        choose_any(cx, plan, out);
        return MS_OK;
    }
    out->backend = find_backend(flags);
    return out->backend != NULL
               ? MS_OK
               : no_backend(cx, ms_backend_names[flags->backend.value], "loop");
}

/* ---- agreement of processes ---- */

bool ms_run_is_one_of_many(const ms_run_choice *choice)
{
    return choice->mpiexec == NULL && choice->environment.size > 1 && !ms_launch_is_own();
}

typedef struct agreement {
    const ms_backend_job *job;
    ms_status own;
    long found;        /* (ranks - r) * STATUS_MODULUS + status, r: lowest failed rank */
    bool lower_failed; /* a lower rank has failed too */
} agreement;

#define STATUS_MODULUS 256L

static ms_status find_failed(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    agreement *a = state;
    long own = (a->job->world->num_ranks - rank) * STATUS_MODULUS + (long)a->own;
    a->found = a->own == MS_OK ? 0 : own;
    ms_event done;
    ms_transfer all = {.kind = MS_TRANSFER_ALL_REDUCE,
                       .scalar = MS_SCALAR_LONG,
                       .on_host = true,
                       .maximum = true,
                       .group = MS_TRAFFIC_WORLD,
                       .send = &a->found,
                       .receive = &a->found,
                       .count = 1,
                       .name = "all ranks"};
    MS_TRY(a->job->backend->start(cx, device, &all, NULL, 0, &done));
    MS_TRY(a->job->backend->wait(cx, device, done));
    a->lower_failed = a->own != MS_OK && a->found > own;
    return MS_OK;
}

void ms_run_note_cores(ms_ctx *cx, const ms_run_choice *choice, long num_ranks)
{
    long num_cores = ms_machine_cores();
    if (num_ranks > num_cores && choice->backend->has_values &&
        !choice->backend->on_gpu && choice->environment.size == 1)
        ms_note(cx, "%ld ranks share %ld core%s: times mean little", num_ranks, num_cores,
                num_cores == 1 ? "" : "s");
}

ms_status ms_run_agree(ms_ctx *cx, ms_backend_job *job, ms_status own)
{
    agreement a = {job, own, 0, false};
    ms_status status = job->backend->run(cx, job, find_failed, &a);
    if (status != MS_OK)
        return own != MS_OK ? own : status;
    if (own != MS_OK &&
        !a.lower_failed) /* print at once: launchers end all ranks when one fails */
        ms_diag_print(cx, stderr);
    ms_run_forget_errors(cx);
    return (ms_status)(a.found % STATUS_MODULUS);
}

void ms_run_forget_errors(ms_ctx *cx)
{
    cx->first = cx->last = NULL;
    cx->num_errors = 0;
}
