/* All ranks in this process, a thread each (exec/backend_crew.h). */
#include "exec/backend_crew.h"

/* ---- open, run, close ---- */

static ms_status loop_open(ms_ctx *cx, ms_backend_job *job)
{
    job->state = ms_pool_open();
    return job->state != NULL ? MS_OK
                              : ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory is left");
}

static void loop_close(ms_backend_job *job)
{
    ms_pool_close(job->state);
    job->state = NULL;
}

static bool loop_carries(const ms_backend_job *job, long rank)
{
    return rank >= 0 && rank < job->world->num_ranks;
}

/* An all-reduce is done once, in the first member's copy. */
static void complete_round(const ms_crew *crew, ms_post *posts, int size)
{
    (void)crew;
    ms_parcel *first = posts[0].data;
    if (first->transfer.kind != MS_TRANSFER_ALL_REDUCE)
        return;
    for (int i = 1; i < size; i++)
        if (!ms_parcels_agree(first, posts[i].data))
            return; /* every member finds this out */
    for (int i = 1; i < size; i++)
        ms_parcel_fold(first, first->data, ((const ms_parcel *)posts[i].data)->data,
                       first->count);
}

static ms_status loop_run(ms_ctx *cx, ms_backend_job *job, ms_rank_main *main,
                          void *state)
{
    long num_ranks = job->world->num_ranks;
    ms_arena *arena = ms_arena_open();
    ms_crew *crew = ms_crew_open(
        job, (ms_crew_habits){.complete = complete_round, .release = ms_parcel_drop});
    ms_device_rank *all = MS_NEW_ARRAY(arena, num_ranks, ms_device_rank);
    ms_device_rank **devices = MS_NEW_ARRAY(arena, num_ranks, ms_device_rank *);
    for (long rank = 0; rank < num_ranks; rank++) {
        devices[rank] = &all[rank];
        all[rank] = (ms_device_rank){.crew = crew,
                                     .world = job->world,
                                     .kernels = ms_cpu_kernels(job->type),
                                     .pool = job->state,
                                     .rank = rank};
        ms_crew_rank_open(devices[rank]);
    }
    ms_status status = ms_crew_run(cx, crew, main, devices, state);
    for (long rank = 0; rank < num_ranks; rank++)
        ms_crew_rank_close(devices[rank]);
    ms_crew_close(crew);
    ms_arena_close(arena);
    return status;
}

static void loop_abort(ms_device_rank *device)
{
    ms_crew_fail(device->crew, device->rank);
}

const ms_backend ms_backend_loop = {
    .name = "loop",
    .has_values = true,
    .arrays = &ms_host_arrays,
    .computes = {[MS_REAL_FP32] = true, [MS_REAL_FP64] = true},
    .workspace_bytes = ms_host_workspace_bytes,
    .open = loop_open,
    .run = loop_run,
    .close = loop_close,
    .carries = loop_carries,
    .allocate = ms_crew_rank_allocate,
    .release = ms_crew_rank_release,
    .kernel = ms_crew_rank_kernel,
    .idle = ms_host_idle,
    .mark = ms_host_mark,
    .start = ms_crew_rank_start,
    .wait = ms_crew_rank_wait,
    .now_s = ms_crew_rank_now_s,
    .abort = loop_abort,
};
