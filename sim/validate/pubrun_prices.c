#include "sim/validate/pubrun_prices.h"

#include "base/number.h"
#include "costmodel/plan/plan_field.h"
#include "sim/step/prediction.h"
#include "sim/step/recompute_fit.h"

#include <math.h>
#include <string.h>

/* A workload that several runs share, so that its layer programs are priced once. */
typedef struct shared_workload {
    ms_pubrun first; /* copy of the published run that the workload was opened for */
    ms_workload *workload;
    struct shared_workload *next;
} shared_workload;

struct ms_pubrun_prices {
    ms_arena *arena;     /* memory of everything that outlives one prediction */
    ms_arena *scratch;   /* memory of one prediction, cleared after it */
    ms_arena_mark empty; /* `arena` before any workload, for rewinding */
    shared_workload *first;
};

static bool same_workload(const ms_pubrun *a, const ms_pubrun *b)
{
    return a->model == b->model && a->cluster == b->cluster && a->stack == b->stack &&
           ms_plan_same_workload(&a->plan, &b->plan);
}

static ms_status find_workload(ms_pubrun_prices *prices, const ms_pubrun *run,
                               ms_workload **out)
{
    for (shared_workload *at = prices->first; at != NULL; at = at->next) {
        if (same_workload(&at->first, run)) {
            *out = at->workload;
            return MS_OK;
        }
    }
    ms_ctx lasting = {.arena = prices->arena};
    const ms_workload_inputs inputs = {run->model, run->cluster, run->profile, run->stack,
                                       NULL};
    MS_TRY(ms_workload_make(&lasting, &inputs, &run->plan, out));
    shared_workload *made = MS_NEW(prices->arena, shared_workload);
    *made = (shared_workload){.first = *run, .workload = *out, .next = prices->first};
    prices->first = made;
    return MS_OK;
}

double ms_pubrun_error_frac(double predicted, double measured)
{
    return predicted / measured - 1.0;
}

/* The predicted memory of the run's own kind on the rank that was measured. */
static double measured_rank_bytes(const ms_pubrun *run, const ms_prediction *prediction)
{
    const ms_stage_prediction *stages = prediction->stages;
    if (run->memory_rank == MS_MEMORY_OF_FIRST)
        return stages[0].kind_bytes[run->memory_kind];
    if (run->memory_rank == MS_MEMORY_OF_LAST)
        return stages[prediction->num_stages - 1].kind_bytes[run->memory_kind];
    double most_bytes = 0.0;
    for (int i = 0; i < prediction->num_stages; i++)
        most_bytes = ms_max(most_bytes, stages[i].kind_bytes[run->memory_kind]);
    return most_bytes;
}

static ms_pubrun_score score_of(const ms_pubrun *run, const ms_prediction *prediction)
{
    double peak_bytes = measured_rank_bytes(run, prediction);
    ms_pubrun_score score = {.step_s = prediction->step_s,
                             .step_low_s = (double)NAN,
                             .step_high_s = (double)NAN,
                             .peak_bytes = peak_bytes,
                             .peak_low_bytes = peak_bytes,
                             .peak_high_bytes = peak_bytes,
                             .peak_interval_low_bytes = (double)NAN,
                             .peak_interval_high_bytes = (double)NAN,
                             .fits_probability = (double)NAN,
                             .peak_rank_frac = (double)NAN,
                             .worst_peak_bytes = prediction->peak_bytes,
                             .outside_bytes = prediction->outside_bytes,
                             .capacity_bytes = prediction->capacity_bytes,
                             .compute_s = prediction->compute_s,
                             .exposed_comm_s = prediction->exposed_comm_s,
                             .bubble_s = prediction->bubble_s,
                             .optimizer_s = prediction->optimizer_s,
                             .host_s = prediction->host_s,
                             .mfu_frac = prediction->mfu_frac};
    score.step_error_frac = ms_pubrun_error_frac(score.step_s, run->measured_step_s);
    score.peak_error_frac =
        ms_pubrun_error_frac(score.peak_bytes, run->measured_peak_bytes);
    score.priced = !isnan(score.step_error_frac) || !isnan(score.peak_error_frac);
    if (run->unfinished)
        score.priced = isfinite(score.worst_peak_bytes);
    score.over_memory = score.priced && !prediction->fits;
    return score;
}

static ms_status predict(ms_pubrun_prices *prices, const ms_pubrun *run,
                         ms_prediction *out)
{
    ms_workload *workload = NULL;
    MS_TRY(find_workload(prices, run, &workload));
    ms_ctx inner = {.arena = prices->scratch};
    return ms_predict(&inner, workload, &run->plan, out);
}

ms_status ms_pubrun_price(ms_pubrun_prices *prices, const ms_pubrun *run,
                          ms_pubrun_score *out)
{
    ms_prediction prediction;
    ms_arena_mark empty = ms_arena_save(prices->scratch);
    ms_status status = predict(prices, run, &prediction);
    if (status == MS_OK)
        *out = score_of(run, &prediction);
    ms_arena_rewind(prices->scratch, empty);
    return status;
}

/* ---- values that memory determines ---- */

/* A predicted peak above this fraction of a GPU's memory cannot be explained by errors of
 * prediction: the plan as stated is not the one that ran. */
static const double impossible_frac = 1.5;

/* Whether the predicted peak is at most `frac` of the GPU's memory; false if the run
 * cannot be predicted. */
static bool fits_within(ms_pubrun_prices *prices, const ms_pubrun *run, double frac)
{
    ms_prediction prediction;
    ms_arena_mark empty = ms_arena_save(prices->scratch);
    bool fit = predict(prices, run, &prediction) == MS_OK &&
               prediction.peak_bytes + prediction.outside_bytes <=
                   frac * prediction.capacity_bytes;
    ms_arena_rewind(prices->scratch, empty);
    return fit;
}

static bool fits(ms_pubrun_prices *prices, const ms_pubrun *run)
{
    return fits_within(prices, run, 1.0);
}

/* Doubles the micro-batch, and the global batch if the row states none. False if the
 * ranks can no longer share the stated global batch. */
static bool double_batch(ms_pubrun *run)
{
    run->plan.microbatch *= 2;
    if (run->microbatch_open)
        return run->plan.global_batch %
                   (run->plan.microbatch * ms_plan_data_parallel(&run->plan)) ==
               0;
    run->plan.global_batch *= 2;
    run->measured_step_s *= 2.0;
    return true;
}

static void fill_batch(ms_arena *arena, ms_pubrun_prices *prices, ms_pubrun *run)
{
    const long most = 1024;
    bool is_open = run->batch_open || run->microbatch_open;
    bool fits_one = is_open && fits(prices, run);
    if (is_open && !fits_one) {
        run->plan.microbatch = 1;
        fits_one = fits(prices, run);
    }
    while (fits_one && run->plan.microbatch < most) {
        ms_pubrun trial = *run;
        if (!double_batch(&trial) || !fits(prices, &trial))
            break;
        (void)double_batch(run);
    }
    if (!is_open)
        return;
    const char *before = run->defaults == NULL ? "" : run->defaults;
    run->defaults = ms_arena_printf(arena, "%s%smicro-batch %ld%s", before,
                                    *before == '\0' ? "" : ", ", run->plan.microbatch,
                                    fits_one ? ", the most that fits" : "");
    if (run->batch_open)
        run->defaults = ms_arena_printf(arena, "%s, global batch %ld", run->defaults,
                                        run->plan.global_batch);
    run->batch_open = run->microbatch_open = false;
}

/* Sets full recomputation on as few layers of each model chunk as fit; false if all
 * layers do not suffice. */
static bool fits_with_layers(ms_pubrun_prices *prices, ms_pubrun *run)
{
    ms_plan *plan = &run->plan;
    long chunks = plan->size[MS_PP] * plan->virtual_stages;
    long layers = (run->model->num_layers + chunks - 1) / chunks;
    plan->recompute = MS_RECOMPUTE_FULL;
    for (plan->recompute_layers = 1; plan->recompute_layers < layers;
         plan->recompute_layers++)
        if (fits(prices, run))
            return true;
    plan->recompute_layers = 0;
    return fits(prices, run);
}

static bool is_possible(ms_pubrun_prices *prices, const ms_pubrun *run)
{
    ms_recompute stated = run->plan.recompute;
    bool states_little = stated == MS_RECOMPUTE_NONE || stated == MS_RECOMPUTE_SELECTIVE;
    bool is_doubted = run->recompute_open || (run->zero_open && states_little);
    return !is_doubted || !isnan(run->measured_peak_bytes) ||
           fits_within(prices, run, run->recompute_open ? 1.0 : impossible_frac);
}

/* Sets the recomputation that costs the least time and fits (ms_recompute_fit); false if
 * none fits. Changes the recomputation budget of a workload that no other run shares. */
static bool fits_with_least(ms_pubrun_prices *prices, ms_pubrun *run)
{
    ms_arena_mark empty = ms_arena_save(prices->scratch);
    ms_ctx inner = {.arena = prices->scratch};
    const ms_workload_inputs inputs = {run->model, run->cluster, run->profile, run->stack,
                                       NULL};
    ms_workload *workload = NULL;
    run->plan.recompute = MS_RECOMPUTE_AUTO;
    run->plan.recompute_budget_frac = -1.0;
    bool found = ms_workload_make(&inner, &inputs, &run->plan, &workload) == MS_OK &&
                 ms_recompute_fit(workload, &run->plan) == MS_OK;
    ms_workload_close(workload);
    ms_arena_rewind(prices->scratch, empty);
    return found && fits(prices, run);
}

/* Recomputes more: the cheapest subset if the table row leaves recomputation open;
 * otherwise selective, else full on as few layers as fit. False if nothing fits. */
static bool fits_with_more(ms_pubrun_prices *prices, ms_pubrun *run)
{
    if (run->recompute_open)
        return fits_with_least(prices, run);
    bool can_more = run->plan.recompute == MS_RECOMPUTE_NONE;
    run->plan.recompute = MS_RECOMPUTE_SELECTIVE;
    return (can_more && fits(prices, run)) || fits_with_layers(prices, run);
}

/* Recomputes more; if the run still does not fit and its row states no ZeRO stage, also
 * shards the optimizer states (stage 1). False if nothing fits. */
static bool fits_with_zero1(ms_pubrun_prices *prices, ms_pubrun *run)
{
    const ms_plan written = run->plan;
    if (fits_with_more(prices, run))
        return true;
    run->plan = written;
    if (!run->zero_open || written.zero > 0 || written.size[MS_DP_SHARD] == 1)
        return false;
    run->plan.zero = 1;
    if (fits(prices, run) || fits_with_more(prices, run))
        return true;
    run->plan = written;
    return false;
}

static void fill_recomputation(ms_arena *arena, ms_pubrun_prices *prices, ms_pubrun *run)
{
    const ms_plan written = run->plan;
    if (is_possible(prices, run))
        return;
    bool fits_now = fits_with_zero1(prices, run);
    if (!fits_now && !run->recompute_open)
        return;
    if (!fits_now)
        run->plan.recompute = MS_RECOMPUTE_FULL;
    const ms_plan *plan = &run->plan;
    const char *which = ms_recompute_names[plan->recompute];
    if (plan->recompute_layers > 0)
        which =
            ms_arena_printf(arena, "full on %ld layers a chunk", plan->recompute_layers);
    if (plan->recompute == MS_RECOMPUTE_AUTO)
        which = ms_arena_printf(arena, "auto %g", plan->recompute_budget_frac);
    run->defaults = ms_arena_printf(
        arena, "%s%s%srecompute %s since it would not fit with %s",
        run->defaults == NULL ? "" : run->defaults, run->defaults == NULL ? "" : ", ",
        plan->zero != written.zero ? "zero 1 and " : "", which,
        ms_recompute_names[written.recompute]);
}

void ms_pubrun_fill_batch(ms_arena *arena, ms_pubrun_prices *prices, ms_pubrun *run)
{
    if (run->unfinished)
        return;
    fill_batch(arena, prices, run);
    fill_recomputation(arena, prices, run);
}

/* ---- ranges ---- */

/* The stack with all-gathered inputs saved (`saved`) or gathered again in backward.
 * Equal stacks are one object, because workloads are shared by stack. */
static const ms_stack *stack_with_gathers(const ms_pubrun_prices *prices,
                                          const ms_stack *stack, bool saved)
{
    for (const shared_workload *at = prices->first; at != NULL; at = at->next) {
        const ms_stack *found = at->first.stack;
        if (found != stack && found->regather == !saved && !found->holds_gathers_alone &&
            strcmp(found->name, stack->name) == 0)
            return found;
    }
    ms_stack *variant = MS_NEW(prices->arena, ms_stack);
    *variant = ms_stack_with_gathers(stack, saved);
    return variant;
}

/* Activation bytes of one micro-batch; 0 if the schedule already has all micro-batches of
 * the step in flight. A host that runs ahead of its GPU begins one more forward before a
 * backward has freed its activations. */
static double extra_microbatch_bytes(const ms_pubrun *run,
                                     const ms_prediction *prediction)
{
    const ms_stage_prediction *stage = &prediction->stages[0];
    bool more = ms_plan_microbatches(&run->plan) > stage->live_microbatches;
    return more && stage->live_microbatches > 0
               ? stage->memory[MS_MEMORY_ACTIVATIONS] / stage->live_microbatches
               : 0.0;
}

static ms_status find_range(ms_pubrun_prices *prices, const ms_pubrun *run,
                            ms_pubrun_score *score)
{
    double *const ends[] = {&score->peak_low_bytes, &score->peak_high_bytes};
    for (int saved = 0; saved < 2; saved++) {
        ms_pubrun *variant = MS_NEW(prices->arena, ms_pubrun);
        *variant = *run;
        variant->stack = stack_with_gathers(prices, run->stack, saved == 1);
        ms_prediction prediction;
        MS_TRY(predict(prices, variant, &prediction));
        *ends[saved] = measured_rank_bytes(run, &prediction);
        if (saved == 1)
            *ends[saved] += extra_microbatch_bytes(run, &prediction);
    }
    return MS_OK;
}

ms_status ms_pubrun_price_range(ms_pubrun_prices *prices, const ms_pubrun *run,
                                ms_pubrun_score *score)
{
    if (isnan(run->measured_peak_bytes) || !run->stack->holds_gathers_alone ||
        run->plan.size[MS_TP] == 1)
        return MS_OK;
    ms_arena_mark empty = ms_arena_save(prices->scratch);
    ms_status status = find_range(prices, run, score);
    ms_arena_rewind(prices->scratch, empty);
    return status;
}

/* ---- open and close ---- */

ms_pubrun_prices *ms_pubrun_prices_open(void)
{
    ms_arena *arena = ms_arena_open();
    ms_pubrun_prices *prices = MS_NEW(arena, ms_pubrun_prices);
    *prices = (ms_pubrun_prices){.arena = arena, .scratch = ms_arena_open()};
    prices->empty = ms_arena_save(arena);
    return prices;
}

void ms_pubrun_prices_forget(ms_pubrun_prices *prices)
{
    for (shared_workload *at = prices->first; at != NULL; at = at->next)
        ms_workload_close(at->workload);
    prices->first = NULL;
    ms_arena_rewind(prices->arena, prices->empty);
}

void ms_pubrun_prices_close(ms_pubrun_prices *prices)
{
    ms_pubrun_prices_forget(prices);
    ms_arena_close(prices->scratch);
    ms_arena_close(prices->arena);
}

const ms_pubrun_score ms_pubrun_unpriced = {.step_s = (double)NAN,
                                            .step_low_s = (double)NAN,
                                            .step_high_s = (double)NAN,
                                            .peak_bytes = (double)NAN,
                                            .peak_interval_low_bytes = (double)NAN,
                                            .peak_interval_high_bytes = (double)NAN,
                                            .fits_probability = (double)NAN,
                                            .peak_rank_frac = (double)NAN,
                                            .worst_peak_bytes = (double)NAN,
                                            .outside_bytes = (double)NAN,
                                            .capacity_bytes = (double)NAN,
                                            .step_error_frac = (double)NAN,
                                            .peak_error_frac = (double)NAN,
                                            .compute_s = (double)NAN,
                                            .exposed_comm_s = (double)NAN,
                                            .bubble_s = (double)NAN,
                                            .optimizer_s = (double)NAN,
                                            .host_s = (double)NAN,
                                            .mfu_frac = (double)NAN};
