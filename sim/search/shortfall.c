/* Finds the nearest change with which a plan fits device memory, by predictions. */
#include "sim/search/shortfall.h"

#include "sim/search/refusals.h"
#include "sim/step/framework_rules.h"
#include "sim/step/prediction_text.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#define MAX_MORE_GPUS 64

/* ---- one plan ---- */

typedef struct attempt {
    ms_arena *arena;
    ms_workload *workload;
    const ms_plan *plan;
    ms_shortfall *out;
} attempt;

/* Number of GPUs whose memory one copy of the model's parameters, gradients, master
 * weights and moments fills; beside adapters, of the frozen weights. */
static double gpus_of_states(const ms_workload *workload)
{
    const ms_stack *stack = workload->stack;
    double bytes = stack->param_bytes.value + stack->grad_bytes.value +
                   stack->master_bytes.value + stack->moment_bytes.value;
    if (workload->lora.rank > 0)
        bytes = stack->frozen_param_bytes;
    return ms_model_params(workload->model).total * bytes /
           workload->cluster->device.memory_bytes;
}

static bool states_can_fit(const ms_workload *workload, long num_gpus)
{
    return gpus_of_states(workload) <= (double)num_gpus;
}

static bool try_plan(const attempt *a, const ms_plan *plan, const char *flags)
{
    long most = a->workload->cluster->max_gpus;
    if (ms_plan_refusal(plan, a->workload->model) != MS_LEGAL ||
        ms_workload_broken_rule(a->workload, plan) != NULL ||
        (most > 0 && plan->gpus > most) || !states_can_fit(a->workload, plan->gpus))
        return false;
    ms_ctx scratch = {.arena = ms_arena_open()};
    ms_prediction prediction;
    bool fits =
        ms_predict(&scratch, a->workload, plan, &prediction) == MS_OK && prediction.fits;
    if (fits) {
        a->out->change = flags;
        a->out->changed = *plan;
        a->out->step_s = prediction.step_s;
        a->out->changed_fits_probability = prediction.fits_probability;
        a->out->peak_bytes = prediction.peak_bytes;
    }
    ms_arena_close(scratch.arena);
    return fits;
}

static bool can_reshard(const attempt *a, const ms_plan *plan)
{
    return plan->size[MS_PP] == 1 || a->workload->stack->reshards_in_pipelines;
}

static const char *reshard_flag(const ms_plan *plan)
{
    return plan->reshard_after_forward ? " --reshard-after-forward on"
                                       : " --reshard-after-forward off";
}

/* The --zero flag of a changed plan, always stated since the default stage may differ;
 * with stage 3 and another pp than before also --reshard-after-forward. */
static const char *zero_flags(const attempt *a, const ms_plan *plan)
{
    bool same = plan->zero < 3 || plan->size[MS_PP] == a->plan->size[MS_PP];
    return ms_arena_printf(a->arena, " --zero %ld%s", plan->zero,
                           same ? "" : reshard_flag(plan));
}

static bool try_recompute(const attempt *a)
{
    static const ms_recompute modes[] = {MS_RECOMPUTE_SELECTIVE, MS_RECOMPUTE_FULL};
    for (int i = 0; i < 2; i++) {
        ms_plan plan = *a->plan;
        bool partial = plan.recompute == MS_RECOMPUTE_FULL && plan.recompute_layers > 0;
        bool keeps_less =
            modes[i] > plan.recompute || plan.recompute == MS_RECOMPUTE_AUTO;
        if (!keeps_less && !(partial && modes[i] == MS_RECOMPUTE_FULL))
            continue;
        plan.recompute = modes[i];
        plan.recompute_layers = 0;
        const char *flags =
            ms_arena_printf(a->arena, "--recompute %s%s", ms_recompute_names[modes[i]],
                            partial ? " --recompute-layers 0" : "");
        if (try_plan(a, &plan, flags))
            return true;
    }
    return false;
}

static bool try_zero(const attempt *a)
{
    for (long zero = a->plan->zero + 1; zero <= 3; zero++) {
        ms_plan plan = *a->plan;
        plan.zero = zero;
        if (zero == 3)
            plan.reshard_after_forward = can_reshard(a, &plan);
        const char *flags = ms_arena_printf(a->arena, "--zero %ld%s", zero,
                                            zero == 3 ? reshard_flag(&plan) : "");
        if (try_plan(a, &plan, flags))
            return true;
    }
    ms_plan plan = *a->plan;
    if (plan.zero < 3 || plan.reshard_after_forward || !can_reshard(a, &plan))
        return false;
    plan.reshard_after_forward = true;
    return try_plan(a, &plan, "--reshard-after-forward on");
}

static bool try_microbatch(const attempt *a)
{
    ms_plan plan = *a->plan;
    if (plan.microbatch == 1)
        return false;
    plan.microbatch /= 2;
    return try_plan(a, &plan,
                    ms_arena_printf(a->arena, "--microbatch %ld", plan.microbatch));
}

static bool try_axis(const attempt *a, ms_plan_axis axis, const char *name)
{
    ms_plan plan = *a->plan;
    if (plan.size[MS_DP_SHARD] % 2 != 0)
        return false;
    if (axis == MS_TP && plan.size[MS_TP] == 1)
        plan.sequence_parallel = true;
    if (axis == MS_PP) {
        plan.num_stage_layers = 0;
        plan.layers_per_stage = NULL;
    }
    plan.size[axis] *= 2;
    plan.size[MS_DP_SHARD] /= 2;
    plan.reshard_after_forward = plan.reshard_after_forward && can_reshard(a, &plan);
    return try_plan(a, &plan,
                    ms_arena_printf(a->arena, "--%s %ld --dp-shard %ld%s", name,
                                    plan.size[axis], plan.size[MS_DP_SHARD],
                                    zero_flags(a, &plan)));
}

static bool try_axes(const attempt *a)
{
    return try_axis(a, MS_TP, "tp") || try_axis(a, MS_PP, "pp") ||
           try_axis(a, MS_CP, "cp");
}

/* The flag " --global-batch 512"; "" if the plan's GPUs have that batch by default. */
static const char *batch_flag(ms_arena *arena, const ms_plan *plan)
{
    if (plan->global_batch == ms_plan_default_batch(plan->gpus, plan->sequence_length))
        return "";
    return ms_arena_printf(arena, " --global-batch %ld", plan->global_batch);
}

/* Tries 2, 4 ... 64 times as many GPUs, the additional ones in dp_shard. `before`: flags
 * of the changes already made, --zero included; "" if none. */
static bool try_more_gpus_of(const attempt *a, const ms_plan *changed, const char *before)
{
    ms_plan plan = *changed;
    for (long factor = 2; factor <= MAX_MORE_GPUS; factor *= 2) {
        plan.gpus *= 2;
        plan.size[MS_DP_SHARD] *= 2;
        const char *zero = before[0] == '\0' ? zero_flags(a, &plan) : "";
        const char *flags = ms_arena_printf(a->arena, "%s--gpus %ld --dp-shard %ld%s%s",
                                            before, plan.gpus, plan.size[MS_DP_SHARD],
                                            zero, batch_flag(a->arena, &plan));
        if (try_plan(a, &plan, flags))
            return true;
    }
    return false;
}

static bool try_more_gpus(const attempt *a)
{
    return try_more_gpus_of(a, a->plan, "");
}

static bool try_together(const attempt *a)
{
    ms_plan plan = *a->plan;
    plan.recompute = MS_RECOMPUTE_FULL;
    plan.recompute_layers = 0;
    plan.zero = 3;
    plan.reshard_after_forward = can_reshard(a, &plan);
    plan.microbatch = 1;
    const char *flags =
        ms_arena_printf(a->arena, "--recompute full%s --zero 3%s --microbatch 1",
                        a->plan->recompute_layers > 0 ? " --recompute-layers 0" : "",
                        reshard_flag(&plan));
    return try_plan(a, &plan, flags) ||
           try_more_gpus_of(a, &plan, ms_arena_printf(a->arena, "%s ", flags));
}

/* ---- any plan on the same GPUs ---- */

/* Whether the flags that turn the old plan into the new one must state this choice: the
 * plans differ in its value or in its default. */
static bool is_changed(const ms_plan *old, const ms_plan *new, ms_choice choice)
{
    bool differs = !ms_plan_same(old, new, choice);
    bool moved = memcmp(old->size, new->size, sizeof old->size) != 0;
    switch ((int)choice) {
    case MS_CHOOSE_DP_SHARD:
    case MS_CHOOSE_ZERO:
        return differs || moved;
    case MS_CHOOSE_VIRTUAL_STAGES:
        return differs || new->schedule != old->schedule;
    case MS_CHOOSE_STAGE_LAYERS:
        return old->num_stage_layers > 0;
    case MS_CHOOSE_RESHARD:
        return new->zero == 3 && (differs || ms_plan_needs_flag(new, choice));
    case MS_CHOOSE_SEQUENCE_PARALLEL:
        return differs || ms_plan_needs_flag(new, choice);
    case MS_CHOOSE_RECOMPUTE_BUDGET:
        return differs && ms_plan_needs_flag(new, choice);
    default:
        return differs && ms_plan_fields[choice].flag != NULL;
    }
}

/* The largest number of plans in a lean_space for which the whole space is searched too:
 * it has hundreds of times as many plans, and where few of them fit, bounds skip none. */
#define MOST_LEAN_PLANS 50000

static void fix(ms_space *space, ms_choice choice, long value)
{
    if (space->low[choice] <= value && space->high[choice] >= value)
        space->low[choice] = space->high[choice] = value;
}

/* The part of `space` with the plans that need least memory in each mesh. `shards`: with
 * ZeRO-3, in meshes that have ranks to shard over; false: in the other meshes. */
static ms_space lean_space(const ms_space *space, bool shards)
{
    ms_space lean = *space;
    lean.fixed_order = true;
    lean.max_virtual_stages = lean.max_microbatch = 1;
    fix(&lean, MS_CHOOSE_RECOMPUTE, MS_RECOMPUTE_FULL);
    fix(&lean, MS_CHOOSE_RESHARD, true);
    fix(&lean, MS_CHOOSE_ZERO, shards ? 3 : 0);
    fix(&lean, MS_CHOOSE_ASYNC_TP, false);
    if (!shards) {
        fix(&lean, MS_CHOOSE_DP_SHARD, 1);
        fix(&lean, MS_CHOOSE_CP, 1);
    }
    return lean;
}

/* Inputs of a search for a plan that fits, and where its best plan is reported. */
typedef struct fitting {
    ms_workload *workload;
    ms_search_options options;
    ms_shortfall *out;
} fitting;

static bool find_lean(ms_ctx *cx, const fitting *f, const ms_space *space,
                      ms_search_result *result)
{
    bool found = false;
    for (int shards = 1; shards >= 0 && !found; shards--) {
        ms_space lean = lean_space(space, shards);
        found = ms_search(cx, f->workload, &lean, &f->options, result) == MS_OK;
        f->out->configurations += result->counts.configurations;
    }
    return found;
}

/* Reports the fastest plan of `space` that fits device memory; false if none does. */
static bool find_fastest(ms_ctx *cx, const fitting *f, const ms_space *space)
{
    ms_search_result lean, result;
    ms_prediction prediction;
    if (!states_can_fit(f->workload, space->base.gpus) || !find_lean(cx, f, space, &lean))
        return false;
    if (lean.counts.configurations > MOST_LEAN_PLANS ||
        ms_search(cx, f->workload, space, &f->options, &result) != MS_OK)
        result = lean;
    if (ms_predict(cx, f->workload, &result.found[0].plan, &prediction) != MS_OK)
        return false;
    f->out->changed = ms_prediction_plan(&result.found[0].plan, &prediction);
    f->out->step_s = prediction.step_s;
    f->out->changed_fits_probability = prediction.fits_probability;
    f->out->peak_bytes = prediction.peak_bytes;
    return true;
}

/* Reports the fastest plan on 2, else 4 ... else 64 times the GPUs; false: none fits. */
static bool find_with_more_gpus(ms_ctx *cx, const fitting *f, const ms_space *space)
{
    long most = f->workload->cluster->max_gpus;
    for (long factor = 2; factor <= MAX_MORE_GPUS; factor *= 2) {
        ms_space wider = *space;
        wider.base.gpus *= factor;
        wider.high[MS_CHOOSE_DP_SHARD] = LONG_MAX;
        if ((most > 0 && wider.base.gpus > most) ||
            ms_is_interrupted(f->options.interrupted))
            return false;
        if (find_fastest(cx, f, &wider))
            return true;
    }
    return false;
}

/* Writes the changed plan as flags, only those that differ from the original plan. */
static void write_flags(const attempt *a)
{
    const ms_plan *changed = &a->out->changed;
    const char *flags = "";
    for (ms_choice i = MS_CHOOSE_GPUS; i < MS_NUM_CHOICES; i++) {
        if (is_changed(a->plan, changed, i))
            flags = ms_arena_printf(a->arena, "%s%s%s %s", flags,
                                    flags[0] == '\0' ? "" : " ", ms_plan_fields[i].flag,
                                    ms_plan_value_text(a->arena, changed, i));
    }
    if (changed->gpus != a->plan->gpus)
        flags = ms_arena_printf(a->arena, "%s%s", flags, batch_flag(a->arena, changed));
    a->out->is_searched = true;
    a->out->change = flags;
}

void ms_shortfall_of_plan(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                          const ms_prediction *prediction,
                          const ms_search_options *options, ms_shortfall *out)
{
    *out = (ms_shortfall){.needed_bytes = prediction->needed_bytes,
                          .capacity_bytes = prediction->limit.limit_bytes,
                          .fits_probability = prediction->fits_probability,
                          .gpus_of_states = gpus_of_states(workload),
                          .plan = ms_prediction_plan(plan, prediction)};
    out->reason = ms_arena_printf(
        cx->arena,
        "the plan does not fit: pipeline rank %d needs %.2f GiB%s, a GPU of %s has %.2f "
        "GiB%s (%.2f GiB short)",
        prediction->worst_rank, ms_gib(out->needed_bytes),
        ms_margin_text(cx->arena, &prediction->limit), plan->cluster,
        ms_gib(out->capacity_bytes), ms_headroom_text(cx->arena, workload),
        ms_gib(out->needed_bytes - out->capacity_bytes));
    attempt a = {cx->arena, workload, plan, out};
    static bool (*const attempts[])(const attempt *) = {
        try_recompute, try_zero, try_microbatch, try_axes, try_more_gpus, try_together};
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
        if (attempts[i](&a))
            return;
    ms_space space = ms_space_all(plan, workload->stack);
    fitting f = {workload, *options, out};
    f.options.num_best = 1;
    if (find_fastest(cx, &f, &space) || find_with_more_gpus(cx, &f, &space))
        write_flags(&a);
}

/* ---- a search ---- */

static const char *plural(long num)
{
    return num == 1 ? "" : "s";
}

/* Why no plan of a stack can have the probability of the rule, whatever it needs. */
static const char *out_of_reach_text(ms_arena *arena, const ms_workload *workload)
{
    return ms_arena_printf(
        arena,
        "no plan can be said to fit with probability %g: the errors of "
        "published runs with stack %s allow at most %.3f",
        workload->memory.rule.min_probability, workload->stack->name,
        workload->memory.best_probability);
}

/* Explains the plan that needs least; with a rule of risk it is also the one that fits
 * with the largest probability. */
static void explain_least(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                          ms_shortfall *out)
{
    const ms_memory_limit *limit = &workload->memory;
    ms_prediction prediction;
    ms_plan plan = out->plan;
    out->fits_probability = (double)NAN;
    if (ms_predict(cx, workload, &plan, &prediction) == MS_OK)
        out->fits_probability = prediction.fits_probability;
    if (limit->out_of_reach) {
        out->reason = out_of_reach_text(cx->arena, workload);
        return;
    }
    const char *probably = limit->knows_risk && limit->peak_factor > 1.0
                               ? ms_arena_printf(cx->arena, " with probability %g",
                                                 limit->rule.min_probability)
                               : "";
    const char *best = !limit->knows_risk || !(limit->rule.min_probability > 0.0)
                           ? ""
                           : ms_arena_printf(cx->arena, "; it fits with probability %.2f",
                                             out->fits_probability);
    out->reason = ms_arena_printf(
        cx->arena,
        "no plan fits on %ld GPU%s%s: the smallest needs %.2f GiB%s, a GPU of %s has "
        "%.2f GiB%s (%.2f GiB short)%s: %s",
        space->base.gpus, plural(space->base.gpus), probably, ms_gib(out->needed_bytes),
        ms_margin_text(cx->arena, limit), space->base.cluster,
        ms_gib(out->capacity_bytes), ms_headroom_text(cx->arena, workload),
        ms_gib(out->needed_bytes - out->capacity_bytes), best,
        ms_plan_text(cx->arena, &out->plan));
}

/* Names the rule if the framework refuses the plan that needs least although it fits. */
static bool explain_rule(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                         ms_shortfall *out)
{
    const ms_rule *rule = ms_workload_broken_rule(workload, &out->plan);
    if (rule == NULL || !ms_fits_limit(&workload->memory, out->needed_bytes))
        return false;
    out->needed_bytes = NAN;
    out->reason = ms_arena_printf(
        cx->arena, "no plan that fits on %ld GPU%s obeys the rules of the stack: %s",
        space->base.gpus, plural(space->base.gpus),
        ms_broken_rule_text(workload, &out->plan, rule, cx->arena));
    return true;
}

void ms_shortfall_explain(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                          const ms_search_result *result, ms_shortfall *out)
{
    *out = (ms_shortfall){.needed_bytes = result->least_needed_bytes,
                          .capacity_bytes = workload->memory.limit_bytes,
                          .fits_probability = (double)NAN,
                          .gpus_of_states = gpus_of_states(workload),
                          .plan = space->base};
    if (!isfinite(out->needed_bytes)) {
        out->needed_bytes = NAN;
        out->reason = ms_arena_printf(
            cx->arena,
            "no plan on %ld GPU%s divides the model and the batch within the limits%s "
            "(refused: %s)",
            space->base.gpus, plural(space->base.gpus),
            result->counts.refused[MS_REFUSE_FRAMEWORK] == 0
                ? ""
                : " and obeys the rules of the stack",
            ms_refusals_text(cx->arena, workload, space, &result->counts));
        return;
    }
    out->plan = result->least_plan;
    out->plan.num_stage_layers = 0; /* no list of layers: the default split */
    out->plan.layers_per_stage = NULL;
    if (!explain_rule(cx, workload, space, out))
        explain_least(cx, workload, space, out);
}

void ms_shortfall_of_search(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                            const ms_search_options *options,
                            const ms_search_result *result, ms_shortfall *out)
{
    ms_shortfall_explain(cx, workload, space, result, out);
    if (isnan(out->needed_bytes))
        return; /* no plan is legal, and more GPUs would not help */
    fitting f = {workload, *options, out};
    f.options.num_best = 1;
    if (!workload->memory.out_of_reach && find_with_more_gpus(cx, &f, space))
        out->change = ms_arena_printf(cx->arena, "--gpus %ld%s", out->changed.gpus,
                                      batch_flag(cx->arena, &out->changed));
}

/* ---- writing ---- */

static void write_change(ms_jout *out, const ms_shortfall *shortfall)
{
    ms_jout_key(out, "nearest_change");
    if (shortfall->change == NULL) {
        ms_jout_null(out);
        return;
    }
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "flags", shortfall->change);
    ms_jout_number_field(out, "step_s", shortfall->step_s);
    ms_jout_number_field(out, "peak_bytes", shortfall->peak_bytes);
    ms_jout_number_field(out, "fits_probability", shortfall->changed_fits_probability);
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, &shortfall->changed);
    ms_jout_end_object(out);
}

void ms_shortfall_write_json(ms_jout *out, const ms_shortfall *shortfall)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "reason", shortfall->reason);
    ms_jout_number_field(out, "needed_bytes", shortfall->needed_bytes);
    ms_jout_number_field(out, "capacity_bytes", shortfall->capacity_bytes);
    ms_jout_number_field(out, "fits_probability", shortfall->fits_probability);
    ms_jout_number_field(out, "shortfall_bytes",
                         shortfall->needed_bytes - shortfall->capacity_bytes);
    ms_jout_key(out, "plan");
    if (isnan(shortfall->needed_bytes))
        ms_jout_null(out);
    else
        ms_plan_write_json(out, &shortfall->plan);
    write_change(out, shortfall);
    ms_jout_end_object(out);
}

ms_status ms_shortfall_fail(ms_ctx *cx, const ms_shortfall *shortfall)
{
    ms_status status = ms_fail(cx, MS_ENOFIT, MS_NOWHERE, "%s", shortfall->reason);
    if (shortfall->change != NULL) {
        ms_hint(
            cx, "%s: %s (step %.*f s, peak %.2f GiB%s)",
            shortfall->is_searched
                ? "no near change fits, but search finds a plan that does"
                : "the nearest change that fits",
            shortfall->change, ms_decimals(shortfall->step_s), shortfall->step_s,
            ms_gib(shortfall->peak_bytes),
            isnan(shortfall->changed_fits_probability)
                ? ""
                : ms_arena_printf(cx->arena, ", %.0f %% risk",
                                  100.0 * (1.0 - shortfall->changed_fits_probability)));
    } else if (shortfall->needed_bytes <= shortfall->capacity_bytes) {
        ms_hint(cx, "a smaller --min-fit");
    } else if (isnan(shortfall->needed_bytes)) {
        ms_hint(cx, "widen the limits, or choose numbers of GPUs and sequences that "
                    "have more divisors");
    } else if (shortfall->gpus_of_states <= (double)shortfall->plan.gpus) {
        ms_hint(
            cx,
            "nothing near fits, and no plan was found that does; a GPU with at least %.2f GiB "
            "would do",
            ms_gib(shortfall->needed_bytes));
    } else {
        ms_hint(
            cx,
            "nothing near fits, and no plan was found that does; parameters, gradients and "
            "optimizer states alone fill %.3g of these GPUs",
            shortfall->gpus_of_states);
    }
    return status;
}
