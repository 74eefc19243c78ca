#include "exec/runner/runner.h"

#include "base/clock.h"
#include "base/number.h"
#include "costmodel/plan/plan_field.h"
#include "exec/core/plan_types.h"
#include "exec/cpu/gemm.h"
#include "exec/runner/loaded_weights.h"
#include "exec/runner/model_features.h"
#include "exec/runner/outcome_collect.h"
#include "exec/runner/whole_weights.h"

#include <math.h>
#include <string.h>

/* ---- results of ranks ---- */

typedef struct run {
    ms_job job;
    const ms_safe_file *load; /* initial weights; NULL: random ones */
    ms_outcome *out;
    ms_collection weights, gradients, updated;
    bool *carried; /* (ranks): whether this process runs the rank */
    /* (ranks of this process): memory samples, which outlive the rank */
    ms_ledger_sample **samples;
    double *step_s;   /* (ranks, steps): time of each step, by the rank's own clock */
    long *steps_done; /* (ranks): number of finished steps */
    /* [rank][step % 2]: slices recorded by that step's end, for the last two steps */
    long (*slices_done)[2];
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

static void store_outcome(run *state, ms_rank_run *r)
{
    long at = 0;
    for (long i = 0; i < r->rank.place->rank; i++)
        at += state->carried[i];
    ms_rank_outcome *stored = &state->out->ranks[at];
    stored->rank = r->rank.place->rank;
    stored->ledger = r->rank.ledger;
    stored->recorder = r->recorder;
    stored->num_samples = r->num_samples;
    if (r->num_samples > 0)
        memcpy(state->samples[at], r->samples,
               (size_t)r->num_samples * sizeof *r->samples);
    stored->samples = state->samples[at];
    stored->step_s = state->step_s + stored->rank * state->job.options->num_steps;
}

/* ---- steps of a rank ---- */

static ms_status initialise(const run *state, ms_rank_run *r)
{
    const ms_runner_options *options = state->job.options;
    const ms_safe_file *load = state->load;
    for (int i = 0; i < r->num_blocks && r->rank.backend->has_values; i++) {
        ms_param_unit *unit = r->blocks[i]->unit;
        MS_TRY(ms_rank_run_go_on(r));
        if (load != NULL)
            MS_TRY(ms_unit_load(&r->rank, unit, find_loaded, &load));
        else
            MS_TRY(ms_unit_initialise(&r->rank, unit, &options->initial));
    }
    return MS_OK;
}

static void note_step(run *state, const ms_rank_run *r, long step, double step_s)
{
    long rank = r->rank.place->rank, at = rank * state->job.options->num_steps + step;
    state->step_s[at] = step_s;
    state->slices_done[rank][step % 2] = r->recorder.num;
    state->steps_done[rank] = step + 1;
}

/* Stores the time since *since_s by the host's clock, which it sets to now. */
static void note_wall(run *state, long step, bool values, double *since_s)
{
    double now_s = ms_clock_s();
    if (values)
        state->out->wall_s[step] = now_s - *since_s;
    *since_s = now_s;
}

/* Stores how long each action of the step and the parts after them took. */
static void note_actions(run *state, const ms_rank_run *r, long step, double start_s,
                         const double end_s[MS_NUM_STEP_ENDS])
{
    int num = state->out->num_actions;
    if (state->out->action_s == NULL)
        return;
    double *action_s = state->out->action_s + step * (num + MS_NUM_STEP_ENDS);
    for (int i = 0; i < num; i++) { /* two samples an action, the second at its end */
        action_s[i] = r->samples[2 * i + 1].time_s - start_s;
        start_s = r->samples[2 * i + 1].time_s;
    }
    for (int i = 0; i < MS_NUM_STEP_ENDS; i++) {
        action_s[num + i] = end_s[i] - start_s;
        start_s = end_s[i];
    }
}

static void show_progress(const ms_rank_run *r, long step, double loss)
{
    const ms_runner_options *options = r->job->options;
    int num = ms_samples_of_rank(r->rank.planned->schedule, r->pipeline_rank) / 2;
    if (options->progress != NULL)
        options->progress(options->progress_state,
                          &(ms_run_position){step, num, num, loss});
}

static ms_status take_steps(run *state, ms_rank_run *r)
{
    const ms_runner_options *options = state->job.options;
    bool values = r->rank.backend->has_values, first = r->rank.place->rank == 0;
    bool runs_ahead = r->rank.backend->read_clock != NULL;
    double start_s = r->rank.backend->now_s(r->rank.device), wall_s = ms_clock_s();
    for (long step = 0; step < options->num_steps; step++) {
        ms_step_outcome outcome;
        MS_TRY(ms_rank_run_step(r, step, &outcome));
        if (step == 0 && options->wants_gradients && values)
            MS_TRY(ms_collection_fill(r, &state->gradients, MS_UNIT_GRADIENTS));
        double stamps[1 + MS_NUM_STEP_ENDS] = {start_s,
                                               r->rank.backend->now_s(r->rank.device)};
        MS_TRY(ms_rank_run_end_step(r, &outcome));
        stamps[1 + MS_STEP_UPDATES] = r->rank.backend->now_s(r->rank.device);
        MS_TRY(ms_rank_run_read_clock(r, stamps, 1 + MS_NUM_STEP_ENDS));
        double end_s = stamps[1 + MS_STEP_UPDATES];
        note_actions(state, r, step, stamps[0], stamps + 1);
        if (first || !r->rank.backend->carries(state->job.backend, 0)) {
            state->out->losses[step] = outcome.loss;
            for (int i = 0; i < state->out->num_modules; i++)
                state->out->module_losses[step * state->out->num_modules + i] =
                    outcome.module_losses[i];
            state->out->gradient_norms[step] = outcome.gradient_norm;
        }
        note_step(state, r, step, end_s - stamps[0]);
        if (first) {
            note_wall(state, step, values, &wall_s);
            show_progress(r, step, outcome.loss);
        }
        start_s = runs_ahead ? r->rank.backend->now_s(r->rank.device) : end_s;
        if (outcome.interrupted)
            break;
    }
    return MS_OK;
}

static ms_status run_to_end(run *state, ms_rank_run *r)
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

static ms_status reserve_gemm_memory(ms_ctx *cx, const run *state)
{
    int num_ranks = (int)state->out->num_ranks;
    if (!state->job.backend->backend->has_values || ms_gemm_reserve(num_ranks))
        return MS_OK;
    ms_fail(
        cx, MS_EIO, MS_NOWHERE,
        "no memory is left for matrix products: 128 MiB for each of %d rank%s of this "
        "process",
        num_ranks, num_ranks == 1 ? "" : "s");
    ms_hint(cx, "it is address space, which \"ulimit -v\" limits");
    return MS_EIO;
}

/* Runs a rank; its outcome is stored on failure, too, which may be an interruption. */
static ms_status run_rank(ms_ctx *cx, ms_device_rank *device, long rank, run *state)
{
    ms_rank_run r;
    ms_status status = ms_rank_run_open(&r, cx, &state->job, device, rank);
    if (status == MS_OK)
        status = run_to_end(state, &r);
    store_outcome(state, &r);
    ms_rank_run_close(&r);
    return status;
}

static ms_status rank_main(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    ms_arena_name_user(ms_arena_printf(cx->arena, "rank %ld", rank));
    ms_status status = reserve_gemm_memory(cx, state);
    if (status == MS_OK)
        status = run_rank(cx, device, rank, state);
    ms_arena_name_user(NULL);
    return status;
}

/* ---- the run ---- */

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

static int max_samples(const ms_job *job)
{
    const ms_schedule *schedule = job->planned->schedule;
    int largest = 0;
    for (int rank = 0; rank < schedule->shape.num_ranks; rank++) {
        int num = ms_samples_of_rank(schedule, rank);
        largest = num > largest ? num : largest;
    }
    return largest;
}

static void open_outcome(ms_ctx *cx, run *state, ms_outcome *out)
{
    long num_ranks = state->job.backend->world->num_ranks;
    long num_steps = state->job.options->num_steps;
    int num_modules = ms_workload_num_modules(state->job.planned->workload);
    *out = (ms_outcome){.losses = MS_NEW_ARRAY(cx->arena, num_steps, double),
                        .module_losses =
                            MS_NEW_ARRAY(cx->arena, num_steps * num_modules, double),
                        .num_modules = num_modules,
                        .gradient_norms = MS_NEW_ARRAY(cx->arena, num_steps, double),
                        .step_s = MS_NEW_ARRAY(cx->arena, num_steps, double),
                        .wall_s = MS_NEW_ARRAY(cx->arena, num_steps, double)};
    for (long i = 0; i < num_steps; i++)
        out->wall_s[i] = NAN;
    state->out = out;
    state->step_s = MS_NEW_ARRAY(cx->arena, num_ranks * num_steps, double);
    state->steps_done = MS_NEW_ARRAY(cx->arena, num_ranks, long);
    state->slices_done =
        ms_arena_array(cx->arena, (size_t)num_ranks, sizeof *state->slices_done);
    state->carried = MS_NEW_ARRAY(cx->arena, num_ranks, bool);
    for (long i = 0; i < num_ranks; i++) {
        state->carried[i] = state->job.backend->backend->carries(state->job.backend, i);
        out->num_ranks += state->carried[i];
    }
    out->ranks = MS_NEW_ARRAY(cx->arena, out->num_ranks, ms_rank_outcome);
    state->samples = MS_NEW_ARRAY(cx->arena, out->num_ranks, ms_ledger_sample *);
    if (state->job.options->replays) {
        const ms_backend_job *job = state->job.backend;
        int pp = (int)job->world->places[job->replayed_rank].pp;
        out->num_actions = ms_samples_of_rank(state->job.planned->schedule, pp) / 2;
        out->action_s = MS_NEW_ARRAY(
            cx->arena, num_steps * (out->num_actions + MS_NUM_STEP_ENDS), double);
    }
    for (long i = 0; i < out->num_ranks; i++)
        state->samples[i] =
            MS_NEW_ARRAY(cx->arena, max_samples(&state->job), ms_ledger_sample);
}

/* Sets out->steps_done to the number of steps finished by all ranks; when interrupted, a
 * rank may have finished one more. If the interrupt broke off a step, drops time slices
 * of unfinished steps and all memory samples. */
static void keep_complete_steps(const run *state, ms_outcome *out)
{
    out->steps_done = state->job.options->num_steps;
    for (long i = 0; i < out->num_ranks; i++)
        if (state->steps_done[out->ranks[i].rank] < out->steps_done)
            out->steps_done = state->steps_done[out->ranks[i].rank];
    for (long i = 0; i < out->num_ranks && out->broken_off; i++) {
        ms_rank_outcome *rank = &out->ranks[i];
        rank->num_samples = 0;
        rank->recorder.num =
            out->steps_done > 0
                ? state->slices_done[rank->rank][(out->steps_done - 1) % 2]
                : 0;
    }
}

/* For backends with virtual clocks, rejects optimizers without global synchronization:
 * these clocks end a step for all ranks at once. */
static ms_status check_sync(ms_ctx *cx, const ms_backend_job *job,
                            const ms_planned *planned)
{
    if (job->backend->has_values ||
        planned->workload->stack->optimizer_sync == MS_SYNC_GLOBAL)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "backend %s cannot time an optimizer without global synchronization (%s)",
            job->backend->name, ms_optimizer_sync_names[MS_SYNC_POST_VALIDATION]);
    ms_hint(cx, "simulate can; or choose a stack whose optimizer_sync is global");
    return MS_EINPUT;
}

/* Whether a run keeps moments in the plan's type: in FP8 they would need a scale for each
 * tensor; Adafactor divides by moments, which 8-bit blocks round to 0. */
static bool executes_moments(const ms_plan *plan)
{
    return plan->optimizer_dtype != MS_STORE_FP8 &&
           (plan->optimizer_dtype != MS_STORE_INT8 ||
            plan->optimizer != MS_OPTIMIZER_ADAFACTOR);
}

/* Whether a run has such weights, gradients or messages: none in FP8. */
static bool executes_type(const ms_plan *plan, ms_choice choice)
{
    return choice == MS_CHOOSE_GRAD_DTYPE || choice == MS_CHOOSE_MASTER_DTYPE ||
           (choice == MS_CHOOSE_PARAM_DTYPE && plan->param_dtype != MS_STORE_FP8) ||
           (choice == MS_CHOOSE_COMM_DTYPE && plan->comm_dtype != MS_STORE_FP8);
}

/* Whether tokens travel so in a run: rows that fill up experts only as copies. */
static bool executes_dispatcher(const ms_plan *plan)
{
    return plan->dispatcher == MS_DISPATCH_ALL_TO_ALL ||
           (plan->dispatcher == MS_DISPATCH_ALL_GATHER && !plan->pad_experts);
}

ms_status ms_runner_check_plan(ms_ctx *cx, const ms_plan *plan)
{
    for (ms_choice i = MS_CHOOSE_PARAM_DTYPE; i < MS_NUM_CHOICES; i++) {
        bool is_executed =
            (i >= MS_CHOOSE_LORA_RANK && i <= MS_CHOOSE_LORA_BASE) ||
            i == MS_CHOOSE_EXPERT_CAPACITY || i == MS_CHOOSE_PAD_EXPERTS ||
            (i >= MS_CHOOSE_PACKING && i <= MS_CHOOSE_LENGTHS) ||
            i == MS_CHOOSE_SHARED_OVERLAP || i == MS_CHOOSE_STACK ||
            i == MS_CHOOSE_RANKS_PER_DOMAIN || i == MS_CHOOSE_PARTITION_ACTIVATIONS ||
            i == MS_CHOOSE_OPTIMIZER || i == MS_CHOOSE_RECIPE ||
            i == MS_CHOOSE_GATHER_BITS || i == MS_CHOOSE_REDUCE_BITS ||
            executes_type(plan, i) ||
            (i == MS_CHOOSE_MOE_DISPATCHER && executes_dispatcher(plan)) ||
            (i >= MS_CHOOSE_OFFLOAD_ACTIVATIONS && i <= MS_CHOOSE_OFFLOAD_OPTIMIZER) ||
            (i == MS_CHOOSE_OPTIMIZER_DTYPE && executes_moments(plan)) ||
            (i == MS_CHOOSE_BUCKET_BYTES && plan->zero == 0);
        if (is_executed || ms_plan_is_plain(plan, i))
            continue;
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "a run does not execute %s %s",
                ms_plan_fields[i].flag, ms_plan_value_text(cx->arena, plan, i));
        return ms_hint(cx, "predict, simulate and search price it");
    }
    return MS_OK;
}

/* Rejects buckets that several layers share. */
static ms_status check_buckets(ms_ctx *cx, const ms_planned *planned)
{
    const ms_workload *workload = planned->workload;
    double most = 1.0;
    for (int kind = 0; kind < workload->model->num_kinds; kind++) {
        ms_layer_mode mode = ms_plan_layer_mode(planned->plan);
        most = ms_max(most, planned->blocks.layer[kind][mode].unit_layers);
    }
    if (most <= 1.0)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "a run does not reduce the gradients of %.0f layers together (--bucket-size)",
            most);
    return ms_hint(cx, "a bucket of at most the bytes of a layer is executed");
}

/* Rejects packed and padded sequences that a run does not carry out: on GPUs, padded to
 * the longest of a micro-batch, packed in front of mixers with states or of modules that
 * predict tokens further ahead, which may lie in the next sequence. */
static ms_status check_packing(ms_ctx *cx, const ms_backend_job *job,
                               const ms_planned *planned)
{
    const ms_plan *plan = planned->plan;
    const ms_model *model = planned->workload->model;
    bool packed = plan->packing == MS_PACKED;
    const char *where =
        job->backend->on_gpu                                   ? " on GPUs"
        : plan->packing == MS_PADDED                           ? ""
        : packed && ms_model_mixers(model, MS_MIXER_MAMBA) > 0 ? " with Mamba-2 layers"
        : packed && model->num_nextn_predict_layers > 0 ? " with multi-token prediction"
                                                        : NULL;
    bool is_run = job->backend->has_values || plan->packing == MS_PADDED;
    if (!is_run || plan->packing == MS_NOT_PACKED || where == NULL)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "a run does not execute --packing %s%s",
            ms_packing_names[plan->packing], where);
    return ms_hint(cx, "predict, simulate and search price it");
}

/* Rejects plans with adapters that a run does not carry out: on GPUs, beside products in 8
 * or 4 bits, or in modules of multi-token prediction, which prices leave out beside
 * them. */
static ms_status check_adapters(ms_ctx *cx, const ms_backend_job *job,
                                const ms_planned *planned)
{
    const ms_plan *plan = planned->plan;
    const char *what = job->backend->on_gpu      ? "on GPUs"
                       : plan->compute == MS_FP8 ? "on weights in fp8"
                       : plan->compute == MS_FP4 ? "on weights in fp4"
                       : planned->workload->model->num_nextn_predict_layers > 0
                           ? "of multi-token prediction"
                           : NULL;
    if (!job->backend->has_values || plan->lora_rank == 0 || what == NULL)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "a run does not train adapters %s", what);
    return ms_hint(cx, "predict, simulate, explain and search support it");
}

/* Why a run does not gather so: but on CPUs with ZeRO-3 that reshards, and all weights
 * trained; NULL: it does. */
static const char *no_quantized_gathers(const ms_backend_job *job,
                                        const ms_planned *planned)
{
    return job->backend->on_gpu             ? "on GPUs"
           : planned->plan->lora_rank > 0   ? "beside adapters"
           : planned->sharding != MS_ZERO_3 ? "without ZeRO-3 that reshards"
                                            : NULL;
}

/* Why a run does not reduce so: but on CPUs with gradients that are reduced to shards in
 * each micro-batch; NULL: it does. */
static const char *no_quantized_reductions(const ms_backend_job *job,
                                           const ms_planned *planned)
{
    const ms_plan *plan = planned->plan;
    return job->backend->on_gpu                            ? "on GPUs"
           : plan->size[MS_DP_REPLICATE] > 1               ? "with --dp-replicate above 1"
           : !ms_shards_grads(planned->sharding)           ? "without shards of gradients"
           : !ms_plan_is_plain(plan, MS_CHOOSE_COMM_DTYPE) ? "beside --comm-dtype"
                                                           : NULL;
}

/* Rejects quantized traffic that a run does not carry out. */
static ms_status check_traffic(ms_ctx *cx, const ms_backend_job *job,
                               const ms_planned *planned)
{
    static const ms_choice choices[2] = {MS_CHOOSE_GATHER_BITS, MS_CHOOSE_REDUCE_BITS};
    const char *why[2] = {no_quantized_gathers(job, planned),
                          no_quantized_reductions(job, planned)};
    for (int i = 0; i < 2; i++) {
        if (why[i] == NULL || ms_plan_is_plain(planned->plan, choices[i]))
            continue;
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "a run does not execute %s %s %s",
                ms_plan_fields[choices[i]].flag,
                ms_plan_value_text(cx->arena, planned->plan, choices[i]), why[i]);
        return ms_hint(cx, "predict, simulate and search price it; --zero 3 "
                           "--reshard-after-forward on runs it on CPUs");
    }
    return MS_OK;
}

/* Rejects what only backends on CPUs execute: optimizers and types of a plan, that others
 * have no kernels for, and tensors in host memory. */
static ms_status check_choices(ms_ctx *cx, const ms_backend_job *job, const ms_plan *plan)
{
    static const ms_choice choices[] = {
        MS_CHOOSE_OPTIMIZER,           MS_CHOOSE_OPTIMIZER_DTYPE,
        MS_CHOOSE_PARAM_DTYPE,         MS_CHOOSE_GRAD_DTYPE,
        MS_CHOOSE_COMM_DTYPE,          MS_CHOOSE_MASTER_DTYPE,
        MS_CHOOSE_OFFLOAD_ACTIVATIONS, MS_CHOOSE_OFFLOAD_LAYER_INPUTS,
        MS_CHOOSE_OFFLOAD_OPTIMIZER,   MS_CHOOSE_EXPERT_CAPACITY,
        MS_CHOOSE_PAD_EXPERTS,         MS_CHOOSE_MOE_DISPATCHER};
    const int num = sizeof choices / sizeof *choices;
    const ms_array_ops *arrays = job->backend->arrays;
    for (int i = 0; i < num && arrays != NULL && arrays->orthogonalize == NULL; i++) {
        bool sends_copies = choices[i] == MS_CHOOSE_MOE_DISPATCHER &&
                            plan->dispatcher == MS_DISPATCH_ALL_TO_ALL;
        if (sends_copies || ms_plan_is_plain(plan, choices[i]))
            continue;
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "backend %s does not execute %s %s",
                job->backend->name, ms_plan_fields[choices[i]].flag,
                ms_plan_value_text(cx->arena, plan, choices[i]));
        return ms_hint(cx, "leave it out, or choose a backend on CPUs");
    }
    return MS_OK;
}

/* Rejects what a stack, and no choice of the plan, keeps in host memory where a run does
 * not: activations on GPUs, and gradients. */
static ms_status check_host_memory(ms_ctx *cx, const ms_backend_job *job,
                                   const ms_planned *planned)
{
    const ms_stack *stack = planned->workload->stack;
    bool keeps_activations = stack->host_activation_frac.value > 0.0;
    bool keeps_gradients =
        stack->host_optimizer == MS_HOST_UPDATE && stack->offloads_gradients;
    if (!keeps_gradients && !(keeps_activations && job->backend->on_gpu))
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "a run does not keep %s in host memory%s",
            keeps_gradients ? "gradients" : "activations",
            keeps_gradients ? "" : " on GPUs");
    return ms_hint(cx, "stack \"%s\" does; --stack meshsim does not",
                   planned->plan->stack);
}

/* Rejects recipes of products that the backend's kernels do not have. */
static ms_status check_recipe(ms_ctx *cx, const ms_backend_job *job, const ms_plan *plan)
{
    ms_recipe recipe = ms_run_recipe(job->type, plan->recipe);
    if (!job->backend->on_gpu || recipe == MS_RECIPE_DEFAULT ||
        recipe == MS_RECIPE_TENSORWISE)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "backend %s does not execute --precision-recipe %s", job->backend->name,
            ms_recipe_names[recipe]);
    return ms_hint(cx, "it executes tensorwise; backends on CPUs execute all recipes");
}

/* Rejects choices of a plan that the backend does not execute. */
static ms_status check_plan(ms_ctx *cx, const ms_backend_job *job, const ms_plan *plan)
{
    MS_TRY(ms_runner_check_plan(cx, plan));
    MS_TRY(ms_plan_check_run_types(cx, job->type, plan));
    MS_TRY(check_recipe(cx, job, plan));
    return check_choices(cx, job, plan);
}

/* Rejects what a run of this job would leave out or carry out in another way. */
static ms_status check_job(ms_ctx *cx, const ms_backend_job *job,
                           const ms_planned *planned)
{
    MS_TRY(ms_model_check_features(cx, planned->workload->model, job->backend));
    MS_TRY(check_sync(cx, job, planned));
    MS_TRY(check_adapters(cx, job, planned));
    MS_TRY(check_packing(cx, job, planned));
    MS_TRY(check_plan(cx, job, planned->plan));
    MS_TRY(check_buckets(cx, planned));
    MS_TRY(check_host_memory(cx, job, planned));
    return check_traffic(cx, job, planned);
}

ms_status ms_runner_run(ms_ctx *cx, ms_backend_job *job, const ms_planned *planned,
                        const ms_runner_options *options, ms_outcome *out)
{
    *out = (ms_outcome){0};
    MS_TRY(check_job(cx, job, planned));
    run state = {.job = ms_job_make(cx->arena, job, planned, options)};
    MS_TRY(ms_job_check_tags(cx, &state.job));
    MS_TRY(ms_job_check_records(cx, &state.job));
    make_collections(cx, &state);
    open_outcome(cx, &state, out);
    MS_TRY(ms_loaded_weights_make(cx, &state.job, out, &state.load));
    job->interrupted = options->interrupted;
    ms_status status = job->backend->run(cx, job, rank_main, &state);
    out->broken_off = status == MS_EINTERRUPTED;
    if (status != MS_OK && !out->broken_off)
        return status;
    keep_complete_steps(&state, out);
    ms_outcome_find_step_times(out);
    out->weights = state.weights.file;
    out->gradients = state.gradients.file;
    out->updated = state.updated.file;
    return out->broken_off || out->steps_done < options->num_steps ? MS_EINTERRUPTED
                                                                   : MS_OK;
}
