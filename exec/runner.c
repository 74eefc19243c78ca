#include "exec/runner.h"

#include "base/number.h"
#include "exec/collection.h"

#include <string.h>

/* ---- what ranks leave behind ---- */

typedef struct run {
    ms_job job;
    ms_outcome *out;
    ms_collection weights, gradients, updated;
    bool *carried;              /* (ranks) */
    ms_ledger_sample **samples; /* (ranks carried): room that outlives the ranks */
    double *step_s;             /* (ranks, steps) */
} run;

static const double *find_loaded(void *state, const char *name, int num_dims,
                                 const long *shape)
{
    const ms_safe_file *const *file = state;
    const ms_safe_tensor *tensor = ms_safe_find(*file, name);
    bool fits = tensor != NULL && tensor->num_dims == num_dims;
    for (int i = 0; fits && i < num_dims; i++)
        fits = tensor->shape[i] == shape[i];
    return fits ? tensor->values : NULL;
}

static void keep_outcome(run *state, ms_rank_run *r)
{
    long at = 0;
    for (long i = 0; i < r->rank.place->rank; i++)
        at += state->carried[i];
    ms_rank_outcome *kept = &state->out->ranks[at];
    kept->rank = r->rank.place->rank;
    kept->ledger = r->rank.ledger;
    kept->recorder = r->recorder;
    kept->num_samples = r->num_samples;
    if (r->num_samples > 0)
        memcpy(state->samples[at], r->samples,
               (size_t)r->num_samples * sizeof *r->samples);
    kept->samples = state->samples[at];
    kept->step_s = state->step_s + kept->rank * state->job.options->num_steps;
}

/* ---- steps of a rank ---- */

static ms_status initialise(const run *state, ms_rank_run *r)
{
    const ms_runner_options *options = state->job.options;
    const ms_safe_file *load = options->load;
    for (int i = 0; i < r->num_parts && r->rank.backend->has_values; i++) {
        ms_param_unit *unit = r->parts[i]->unit;
        if (load != NULL)
            MS_TRY(ms_unit_load(&r->rank, unit, find_loaded, &load));
        else
            MS_TRY(ms_unit_initialise(&r->rank, unit, &options->initial));
    }
    return MS_OK;
}

static ms_status take_steps(run *state, ms_rank_run *r)
{
    const ms_runner_options *options = state->job.options;
    bool values = r->rank.backend->has_values, first = r->rank.place->rank == 0;
    double start_s = r->rank.backend->now_s(r->rank.device);
    for (long step = 0; step < options->num_steps; step++) {
        ms_step_outcome outcome;
        MS_TRY(ms_rank_run_step(r, step, &outcome));
        if (step == 0 && options->wants_gradients && values)
            MS_TRY(ms_collection_fill(r, &state->gradients, MS_UNIT_GRADIENTS));
        MS_TRY(ms_rank_run_end_step(r, &outcome));
        double end_s = r->rank.backend->now_s(r->rank.device);
        if (first || !r->rank.backend->carries(state->job.backend, 0)) {
            state->out->losses[step] = outcome.loss;
            state->out->gradient_norms[step] = outcome.gradient_norm;
            state->out->steps_done = step + 1;
        }
        state->step_s[r->rank.place->rank * options->num_steps + step] = end_s - start_s;
        start_s = end_s;
        if (outcome.interrupted)
            break;
    }
    return MS_OK;
}

static ms_status whole_run(run *state, ms_rank_run *r)
{
    const ms_runner_options *options = state->job.options;
    bool values = r->rank.backend->has_values;
    MS_TRY(initialise(state, r));
    if (options->wants_weights && values)
        MS_TRY(ms_collection_fill(r, &state->weights, MS_UNIT_WEIGHTS));
    MS_TRY(take_steps(state, r));
    if (options->wants_updated && values)
        MS_TRY(ms_collection_fill(r, &state->updated, MS_UNIT_WEIGHTS));
    return MS_OK;
}

static ms_status rank_main(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    run *shared = state;
    ms_rank_run r;
    ms_status status = ms_rank_run_open(&r, cx, &shared->job, device, rank);
    if (status == MS_OK)
        status = whole_run(shared, &r);
    if (status == MS_OK)
        keep_outcome(shared, &r);
    else
        ms_recorder_close(&r.recorder);
    ms_rank_run_close(&r);
    return status;
}

/* ---- all of it ---- */

static void make_collections(ms_ctx *cx, run *state)
{
    const ms_runner_options *options = state->job.options;
    const bool wanted[] = {options->wants_weights, options->wants_gradients,
                           options->wants_updated};
    ms_collection *all[] = {&state->weights, &state->gradients, &state->updated};
    for (int i = 0; i < 3; i++)
        if (wanted[i] && state->job.backend->backend->has_values)
            *all[i] = ms_collection_make(cx, &state->job);
}

static ms_safe_file file_of(const ms_collection *collection)
{
    return (ms_safe_file){collection->num_tensors, collection->tensors};
}

static int most_samples(const ms_job *job)
{
    const ms_schedule *schedule = job->planned->schedule;
    int most = 0;
    for (int rank = 0; rank < schedule->shape.num_ranks; rank++) {
        int num = ms_samples_of_rank(schedule, rank);
        most = num > most ? num : most;
    }
    return most;
}

static void open_outcome(ms_ctx *cx, run *state, ms_outcome *out)
{
    long num_ranks = state->job.backend->world->num_ranks;
    long num_steps = state->job.options->num_steps;
    *out = (ms_outcome){.losses = MS_NEW_ARRAY(cx->arena, num_steps, double),
                        .gradient_norms = MS_NEW_ARRAY(cx->arena, num_steps, double),
                        .step_s = MS_NEW_ARRAY(cx->arena, num_steps, double)};
    state->out = out;
    state->step_s = MS_NEW_ARRAY(cx->arena, num_ranks * num_steps, double);
    state->carried = MS_NEW_ARRAY(cx->arena, num_ranks, bool);
    for (long i = 0; i < num_ranks; i++) {
        state->carried[i] = state->job.backend->backend->carries(state->job.backend, i);
        out->num_ranks += state->carried[i];
    }
    out->ranks = MS_NEW_ARRAY(cx->arena, out->num_ranks, ms_rank_outcome);
    state->samples = MS_NEW_ARRAY(cx->arena, out->num_ranks, ms_ledger_sample *);
    for (long i = 0; i < out->num_ranks; i++)
        state->samples[i] =
            MS_NEW_ARRAY(cx->arena, most_samples(&state->job), ms_ledger_sample);
}

/* Of the slowest rank of this process. */
static void find_step_times(const run *state, ms_outcome *out)
{
    long num_steps = state->job.options->num_steps;
    for (long rank = 0; rank < state->job.backend->world->num_ranks; rank++)
        for (long step = 0; state->carried[rank] && step < out->steps_done; step++)
            out->step_s[step] =
                ms_max(out->step_s[step], state->step_s[rank * num_steps + step]);
}

/* Virtual clocks end a step when all ranks have met. */
static ms_status check_sync(ms_ctx *cx, const ms_backend_job *job,
                            const ms_planned *planned)
{
    if (job->backend->has_values ||
        planned->workload->stack->optimizer_sync == MS_SYNC_GLOBAL)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "backend %s cannot time an optimizer that waits for nobody (%s)",
            job->backend->name, ms_optimizer_sync_names[MS_SYNC_POST_VALIDATION]);
    ms_hint(cx, "simulate can; or choose a stack whose optimizer_sync is global");
    return MS_EINPUT;
}

ms_status ms_runner_run(ms_ctx *cx, ms_backend_job *job, const ms_planned *planned,
                        const ms_runner_options *options, ms_outcome *out)
{
    *out = (ms_outcome){0};
    MS_TRY(check_sync(cx, job, planned));
    run state = {.job = ms_job_make(cx->arena, job, planned, options)};
    MS_TRY(ms_job_check_tags(cx, &state.job));
    make_collections(cx, &state);
    open_outcome(cx, &state, out);
    MS_TRY(job->backend->run(cx, job, rank_main, &state));
    find_step_times(&state, out);
    out->weights = file_of(&state.weights);
    out->gradients = file_of(&state.gradients);
    out->updated = file_of(&state.updated);
    return out->steps_done < options->num_steps ? MS_EINTERRUPTED : MS_OK;
}
