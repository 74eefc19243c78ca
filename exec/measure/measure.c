/* One launch of the calibration benchmark: opens the backend, measures on all ranks. */
#include "exec/measure/measure_priv.h"

#include "base/number.h"
#include "costmodel/calibrate/statistics.h"
#include "exec/cuda/cuda_backend.h"

#include <string.h>

/* ---- rounds ---- */

ms_rounds ms_rounds_make(ms_arena *arena, int num_cases, uint64_t seed)
{
    const int max_rounds = 1000;
    ms_rounds rounds = {.num_cases = num_cases,
                        .max_rounds = max_rounds,
                        .seconds = MS_NEW_ARRAY(arena, max_rounds * num_cases, double),
                        .elapsed = MS_NEW_ARRAY(arena, max_rounds * num_cases, double),
                        .order = MS_NEW_ARRAY(arena, num_cases, int),
                        .rng = ms_rng_seed(seed)};
    for (int i = 0; i < num_cases; i++)
        rounds.order[i] = i;
    return rounds;
}

const int *ms_rounds_next(ms_rounds *rounds)
{
    if (rounds->num_rounds == rounds->max_rounds)
        return NULL;
    for (int i = rounds->num_cases - 1; i > 0; i--) { /* Fisher-Yates shuffle */
        int j = (int)ms_rng_below(&rounds->rng, (uint64_t)i + 1);
        int swapped = rounds->order[i];
        rounds->order[i] = rounds->order[j];
        rounds->order[j] = swapped;
    }
    rounds->num_rounds++;
    return rounds->order;
}

void ms_rounds_set(ms_rounds *rounds, int which, const ms_timed *timed)
{
    int at = (rounds->num_rounds - 1) * rounds->num_cases + which;
    rounds->seconds[at] = timed->seconds;
    rounds->elapsed[at] = timed->elapsed_s;
}

static double median_of(const ms_rounds *rounds, const double *all, int which,
                        double *scratch)
{
    for (int r = 0; r < rounds->num_rounds; r++)
        scratch[r] = all[r * rounds->num_cases + which];
    return ms_quantile(scratch, rounds->num_rounds, 0.5);
}

void ms_rounds_results(ms_arena *arena, const ms_rounds *rounds, double *results)
{
    double *scratch = MS_NEW_ARRAY(arena, rounds->num_rounds, double);
    for (int c = 0; c < rounds->num_cases; c++) {
        results[c] = median_of(rounds, rounds->seconds, c, scratch);
        results[rounds->num_cases + c] = median_of(rounds, rounds->elapsed, c, scratch);
    }
}

/* ---- ranks ---- */

ms_status ms_measurer_move(const ms_measurer *m, const ms_transfer *transfer)
{
    const ms_backend *backend = m->how->backend;
    ms_event done;
    MS_TRY(backend->start(m->cx, m->device, transfer, NULL, 0, &done));
    return backend->wait(m->cx, m->device, done);
}

ms_status ms_measurer_most(const ms_measurer *m, double *values, long count)
{
    return ms_measurer_move(m, &(ms_transfer){.kind = MS_TRANSFER_ALL_REDUCE,
                                              .scalar = MS_SCALAR_FP64,
                                              .on_host = true,
                                              .maximum = true,
                                              .group = MS_TRAFFIC_FSDP,
                                              .stream = MS_STREAM_TP,
                                              .send = values,
                                              .receive = values,
                                              .count = count,
                                              .name = "calibration"});
}

ms_status ms_measurer_elapsed(const ms_measurer *m, double from, double to,
                              double *seconds)
{
    const ms_backend *backend = m->how->backend;
    double stamps[] = {from, to};
    if (backend->read_clock != NULL) {
        MS_TRY(backend->read_clock(m->cx, m->device, stamps, 2));
        backend->forget_stamps(m->device);
    }
    *seconds = stamps[1] - stamps[0];
    return MS_OK;
}

static void release_all(const ms_measurer *m)
{
    for (int i = 0; i < m->held->num; i++)
        m->how->backend->release(m->device, m->held->memory[i], m->held->bytes[i]);
}

typedef struct launch {
    const ms_measure *how;
    const ms_world *world;
    ms_kernel_cases kernels;
    int num_collectives;
    ms_sample *collectives;
    ms_warm_up warm_up; /* that of rank 0 */
    /* [0][case]: median CPU seconds, [1][case]: median wall-clock seconds; on rank 0 */
    double *kernel_results, *collective_results;
} launch;

static ms_status reduce_results(const ms_measurer *m, double *results, int num_cases,
                                double *to)
{
    MS_TRY(ms_measurer_most(m, results, 2L * num_cases));
    if (m->rank == 0)
        memcpy(to, results, 2 * (size_t)num_cases * sizeof *results);
    return MS_OK;
}

static ms_status measure_all(const ms_measurer *m, launch *l)
{
    double *results =
        MS_NEW_ARRAY(m->cx->arena, 2 * (l->kernels.num + l->num_collectives) + 1, double);
    if (l->kernels.num > 0) {
        ms_warm_up warm_up;
        MS_TRY(ms_measure_kernels(m, &l->kernels, results, &warm_up));
        if (m->rank == 0)
            l->warm_up = warm_up;
        MS_TRY(reduce_results(m, results, l->kernels.num, l->kernel_results));
    }
    if (l->num_collectives == 0)
        return MS_OK;
    MS_TRY(ms_measure_collectives(m, l->collectives, l->num_collectives, results));
    return reduce_results(m, results, l->num_collectives, l->collective_results);
}

static ms_status measure_rank(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    launch *l = state;
    ms_held held = {0};
    ms_measurer m = {cx, l->how, l->world, device, rank, &held};
    ms_status status = measure_all(&m, l);
    release_all(&m);
    return status;
}

/* Adds `cases` to samples, with results[0][case], median CPU seconds, and
 * results[1][case], median wall-clock seconds. */
static void add_samples(ms_arena *arena, const ms_sample *cases, int num,
                        const double *results, ms_samples *samples)
{
    const double least_s = 1e-8; /* lower bound, if a clock stood still */
    for (int i = 0; i < num; i++) {
        ms_sample sample = cases[i];
        sample.seconds = ms_max(results[i], least_s);
        sample.typical_s = ms_max(results[num + i], least_s);
        ms_samples_add(arena, samples, &sample);
    }
}

static ms_status run_launch(ms_ctx *cx, launch *l, ms_backend_job *job,
                            ms_samples *samples)
{
    int num = l->kernels.num;
    ms_sample *kernels = MS_NEW_ARRAY(cx->arena, num + 1, ms_sample);
    for (int i = 0; i < num; i++) {
        kernels[i] = l->kernels.items[i].sample;
        kernels[i].launch = l->how->launch;
    }
    for (int i = 0; i < l->num_collectives; i++)
        l->collectives[i].launch = l->how->launch;
    l->kernel_results = MS_NEW_ARRAY(cx->arena, 2 * num + 1, double);
    l->collective_results = MS_NEW_ARRAY(cx->arena, 2 * l->num_collectives + 1, double);
    MS_TRY(job->backend->run(cx, job, measure_rank, l));
    if (!job->backend->carries(job, 0))
        return MS_OK;
    add_samples(cx->arena, kernels, num, l->kernel_results, samples);
    if (l->warm_up.seconds > 0.0) {
        ms_samples_add(cx->arena, samples,
                       &(ms_sample){.kind = MS_SAMPLE_WARM_UP,
                                    .ranks = l->how->num_ranks,
                                    .launch = l->how->launch,
                                    .size = {l->warm_up.steady},
                                    .seconds = l->warm_up.seconds,
                                    .typical_s = l->warm_up.seconds});
    }
    add_samples(cx->arena, l->collectives, l->num_collectives, l->collective_results,
                samples);
    return MS_OK;
}

/* Rejects ranks that share a GPU, since their communication uses no link. */
static ms_status refuse_shared(ms_ctx *cx, const ms_backend_job *job)
{
    if (!job->backend->on_gpu || !ms_cuda_job_shares_gpus(job))
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "ranks share a GPU (NCCL_MULTI_RANK_GPU_ENABLE): their communication says "
            "nothing about links");
    ms_hint(cx, "take as many ranks as there are GPUs, or --ranks 1 for kernels alone");
    return MS_EINPUT;
}

ms_status ms_measure_launch(ms_ctx *cx, const ms_measure *how, ms_samples *samples)
{
    ms_plan plan = ms_plan_default(how->num_ranks);
    plan.size[MS_DP_SHARD] = how->num_ranks;
    ms_world world = ms_world_make(cx->arena, &plan);
    launch l = {.how = how, .world = &world};
    if (how->kernels)
        MS_TRY(ms_kernel_cases_make(cx, how, &world, &l.kernels));
    l.num_collectives = ms_collective_cases(cx->arena, how, &l.collectives);
    ms_backend_job job = {.backend = how->backend,
                          .world = &world,
                          .type = how->type,
                          .attention = how->attention,
                          .gemm_choices = how->gemm_choices};
    MS_TRY(how->backend->open(cx, &job));
    ms_status status = l.num_collectives > 0 ? refuse_shared(cx, &job) : MS_OK;
    if (status == MS_OK)
        status = run_launch(cx, &l, &job, samples);
    ms_cuda_used used;
    if (status == MS_OK && how->attention_use != NULL && job.backend->on_gpu &&
        ms_cuda_job_used(&job, 0, &used))
        *how->attention_use = used.attention;
    how->backend->close(&job);
    return status;
}
