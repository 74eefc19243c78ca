/* For a --why question with no legal plan, or none in the search space: finds the reason
 * and the nearest values that would do, by trying them. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/search/why_priv.h"
#include "sim/step/framework_rules.h"

/* ---- nearest values ---- */

#define MAX_MENDS 3

static bool has_plans(ms_workload *workload, const ms_space *space)
{
    return ms_why_count(workload, space, false) > 0;
}

/* The largest value of a choice (degree, batch) worth trying. */
static long most_of(const ms_workload *workload, const ms_space *space, ms_choice choice)
{
    long experts = workload->model->moe.num_experts;
    return ms_choice_words(choice) != NULL      ? ms_choice_last(choice)
           : choice == MS_CHOOSE_EP             ? experts > 0 ? experts : 1
           : choice == MS_CHOOSE_MICROBATCH     ? space->base.global_batch
           : choice == MS_CHOOSE_VIRTUAL_STAGES ? workload->model->num_layers
           : choice == MS_CHOOSE_ZERO           ? 3
                                                : space->base.gpus;
}

static bool is_worth_trying(const ms_workload *workload, const ms_space *space,
                            ms_choice choice, long value)
{
    if (choice < MS_CHOOSE_EP || choice == MS_CHOOSE_ETP)
        return value > 0 && space->base.gpus % value == 0;
    if (choice == MS_CHOOSE_EP)
        return value > 0 && (workload->model->moe.num_experts % value == 0 || value == 1);
    if (choice == MS_CHOOSE_MICROBATCH)
        return value > 0 && space->base.global_batch % value == 0;
    return value > 0 || choice != MS_CHOOSE_VIRTUAL_STAGES;
}

/* Distance of two values, |ln((1 + value) / (1 + from))|, which allows 0. */
static double distance(long value, long from)
{
    return fabs(log((1.0 + (double)value) / (1.0 + (double)from)));
}

/* The value of `choice` nearest to the asked one that allows a legal plan; -1: none. */
static long nearest_value(ms_workload *workload, const ms_space *asked, ms_choice choice)
{
    ms_space tried = *asked;
    long was = asked->low[choice], best = -1, most = most_of(workload, asked, choice);
    for (long value = 0; value <= most; value++) {
        if (value == was || !is_worth_trying(workload, asked, choice, value) ||
            (best >= 0 && distance(value, was) >= distance(best, was)))
            continue;
        tried.low[choice] = tried.high[choice] = value;
        if (has_plans(workload, &tried))
            best = value;
    }
    return best;
}

/* For each asked choice the nearest value that alone makes a legal plan possible, as
 * text: "tp=8 or cp=2"; "": none. */
static const char *mends_text(ms_ctx *cx, ms_workload *workload, const ms_space *asked)
{
    const char *text = "";
    int num = 0;
    for (int i = 0; i < MS_NUM_CHOICES && num < MAX_MENDS; i++) {
        if (!ms_why_is_given(asked, i))
            continue;
        long value = nearest_value(workload, asked, (ms_choice)i);
        if (value < 0)
            continue;
        num++;
        text = ms_arena_printf(cx->arena, "%s%s%s", text, text[0] == '\0' ? "" : " or ",
                               ms_space_choice_text(cx->arena, (ms_choice)i, value));
    }
    return text;
}

/* ---- one plan that stands for the completions ---- */

static long given_or(const ms_space *asked, ms_choice choice, long otherwise)
{
    return ms_why_is_given(asked, choice) ? asked->low[choice] : otherwise;
}

static void set_mesh(const ms_space *asked, int rest_axis, ms_plan *plan)
{
    double others = 1.0;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++) {
        plan->size[axis] = given_or(asked, MS_CHOOSE_PP + axis, 1);
        others *= (double)plan->size[axis];
    }
    bool open = !ms_why_is_given(asked, MS_CHOOSE_PP + rest_axis);
    if (open && others <= (double)plan->gpus && plan->gpus % (long)others == 0)
        plan->size[rest_axis] = plan->gpus / (long)others;
    plan->ep = given_or(asked, MS_CHOOSE_EP, 1);
    plan->etp = given_or(asked, MS_CHOOSE_ETP, 1);
}

/* A plan with the asked choices, defaults elsewhere, and the remaining GPUs in axis
 * `rest_axis`. */
static ms_plan probe(const ms_space *asked, int rest_axis)
{
    ms_plan plan = ms_space_plan(asked, &(ms_mesh_choice){0});
    bool chunks = given_or(asked, MS_CHOOSE_VIRTUAL_STAGES, 1) > 1;
    plan.schedule = chunks ? MS_INTERLEAVED : MS_1F1B;
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++)
        if (ms_why_is_given(asked, i))
            ms_plan_set(&plan, i, asked->low[i]);
    set_mesh(asked, rest_axis, &plan);
    if (!ms_why_is_given(asked, MS_CHOOSE_VIRTUAL_STAGES))
        plan.virtual_stages =
            ms_schedule_default_virtual(plan.schedule, plan.size[MS_PP]);
    if (!ms_why_is_given(asked, MS_CHOOSE_SEQUENCE_PARALLEL))
        plan.sequence_parallel = plan.async_tp;
    if (plan.size[MS_CP] == 1)
        plan.cp_method = MS_CP_ALL_GATHER;
    return plan;
}

/* Sets *plan to a legal plan with the asked choices; else to a refused one, if possible
 * for another reason than its number of ranks. Returns the rule broken, or MS_LEGAL. */
static ms_refusal best_probe(const ms_workload *workload, const ms_space *asked,
                             ms_plan *plan)
{
    static const ms_plan_axis axes[] = {MS_DP_SHARD, MS_DP_REPLICATE, MS_CP, MS_TP,
                                        MS_PP};
    ms_refusal best = MS_NUM_REFUSALS;
    for (size_t i = 0; i < sizeof axes / sizeof *axes && best != MS_LEGAL; i++) {
        ms_plan one = probe(asked, axes[i]);
        ms_refusal refusal = ms_plan_refusal(&one, workload->model);
        bool better = best == MS_NUM_REFUSALS || refusal == MS_LEGAL ||
                      (best == MS_REFUSE_RANKS && refusal != MS_REFUSE_RANKS);
        if (!better)
            continue;
        best = refusal;
        *plan = one;
    }
    return best;
}

/* Why the asked sizes fail: "pp 3 x tp 4 = 12 ranks do not divide 512 GPUs". */
static const char *product_text(ms_ctx *cx, const ms_space *asked)
{
    const char *text = "";
    double product = 1.0;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++) {
        if (!ms_why_is_given(asked, MS_CHOOSE_PP + axis))
            continue;
        product *= (double)asked->low[MS_CHOOSE_PP + axis];
        text =
            ms_arena_printf(cx->arena, "%s%s%s %ld", text, text[0] == '\0' ? "" : " x ",
                            ms_plan_axis_names[axis], asked->low[MS_CHOOSE_PP + axis]);
    }
    return ms_arena_printf(cx->arena, "%s = %.0f ranks do not divide %ld GPUs", text,
                           product, asked->base.gpus);
}

static const char *refusal_text(ms_ctx *cx, const ms_workload *workload,
                                const ms_space *asked, const ms_plan *plan)
{
    bool all_given = true;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        all_given = all_given && ms_why_is_given(asked, MS_CHOOSE_PP + axis);
    if (ms_plan_refusal(plan, workload->model) == MS_REFUSE_RANKS && !all_given)
        return product_text(cx, asked);
    ms_ctx said = {.arena = cx->arena};
    (void)ms_plan_check(&said, plan, workload->model, MS_NOWHERE);
    return said.first->message;
}

static void free_choice(ms_space *asked, ms_choice choice)
{
    asked->low[choice] = 0;
    asked->high[choice] = LONG_MAX;
}

/* For a context-parallel method that the stack lacks: drops it from the question, and cp
 * too if the stack has no method. Returns the reason as text. */
static const char *free_cp_method(ms_ctx *cx, const ms_plan *plan, ms_space *asked)
{
    bool can_any = false;
    for (int i = 0; i < MS_NUM_CP_METHODS; i++)
        can_any = can_any || asked->stack->can_cp[i];
    free_choice(asked, MS_CHOOSE_CP_METHOD);
    if (!can_any)
        free_choice(asked, MS_CHOOSE_CP);
    return ms_arena_printf(cx->arena, "stack %s has no context parallelism%s%s",
                           plan->stack, can_any ? " by " : "",
                           can_any ? ms_cp_method_names[plan->cp_method] : "");
}

/* Drops from `asked` a value that a search never tries. Returns the reason as text. */
static const char *free_untried(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                                ms_space *asked)
{
    long pp = plan->size[MS_PP], v = plan->virtual_stages;
    if (!ms_space_tries_schedule(asked, workload->model, pp, plan->schedule, v)) {
        free_choice(asked, MS_CHOOSE_SCHEDULE);
        free_choice(asked, MS_CHOOSE_VIRTUAL_STAGES);
        return "without a pipeline (pp 1) only 1f1b is tried: no schedule is faster or "
               "keeps fewer micro-batches alive";
    }
    if (!ms_space_tries_cp_method(asked, plan->size[MS_CP], plan->cp_method))
        return free_cp_method(cx, plan, asked);
    ms_links links = ms_links_make(workload, plan);
    ms_shard_sizes sizes = ms_shard_sizes_of(&links, 1);
    bool shards = sizes.dense > 1.0 || sizes.expert > 1.0;
    if (!shards && plan->zero > 0) {
        free_choice(asked, MS_CHOOSE_ZERO);
        return ms_arena_printf(
            cx->arena,
            "zero %ld has nothing to shard over (dp_shard 1, cp 1), so "
            "zero 0 is tried",
            plan->zero);
    }
    free_choice(asked, MS_CHOOSE_RESHARD);
    return "reshard_after_forward matters with zero 3 alone";
}

const char *ms_why_no_plan(ms_ctx *cx, ms_workload *workload, ms_space *asked,
                           ms_why *why)
{
    ms_plan plan;
    why->refusal = best_probe(workload, asked, &plan);
    const char *mends = mends_text(cx, workload, asked);
    const ms_rule *rule =
        why->refusal == MS_LEGAL ? ms_workload_broken_rule(workload, &plan) : NULL;
    if (rule != NULL)
        why->refusal = MS_REFUSE_FRAMEWORK;
    const char *text =
        rule != NULL               ? ms_broken_rule_text(workload, &plan, rule, cx->arena)
        : why->refusal == MS_LEGAL ? free_untried(cx, workload, &plan, asked)
                                   : refusal_text(cx, workload, asked, &plan);
    if (mends[0] != '\0')
        text =
            ms_arena_printf(cx->arena, "%s; the nearest that would do: %s", text, mends);
    if (why->refusal == MS_LEGAL)
        return text;
    why->refused = text;
    return NULL;
}

/* ---- limits ---- */

/* Text of the space's limit on a choice: "tp <= 4", "recompute = none" */
static const char *limit_text(ms_ctx *cx, const ms_space *space, ms_choice choice)
{
    long low = space->low[choice], high = space->high[choice];
    const char *name = ms_plan_fields[choice].name;
    if (low == high)
        return ms_space_choice_text(cx->arena, choice, low);
    if (high == LONG_MAX)
        return ms_arena_printf(cx->arena, "%s>=%ld", name, low);
    if (low <= 1)
        return ms_arena_printf(cx->arena, "%s<=%ld", name, high);
    return ms_arena_printf(cx->arena, "%s>=%ld and %s<=%ld", name, low, name, high);
}

static bool is_limited(const ms_space *space, int choice)
{
    return space->low[choice] > 1 || space->high[choice] < LONG_MAX;
}

/* The first choice whose limit alone excludes all asked plans; MS_NUM_CHOICES: none. */
static ms_choice limit_at_fault(ms_workload *workload, const ms_space *space,
                                const ms_space *asked, const ms_space *both)
{
    for (int i = 0; i < MS_NUM_CHOICES; i++) {
        ms_space one = *asked;
        one.low[i] = both->low[i];
        one.high[i] = both->high[i];
        if (is_limited(space, i) && !has_plans(workload, &one))
            return (ms_choice)i;
    }
    return MS_NUM_CHOICES;
}

static const char *above_text(ms_ctx *cx, const ms_space *asked, ms_choice choice,
                              long most, const char *option)
{
    return ms_arena_printf(cx->arena, "%s, and the search goes to %ld (%s)",
                           ms_space_choice_text(cx->arena, choice, asked->low[choice]),
                           most, option);
}

const char *ms_why_excluded(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                            const ms_space *asked, const ms_space *both, ms_choice empty)
{
    if (asked->low[MS_CHOOSE_VIRTUAL_STAGES] > space->max_virtual_stages)
        return above_text(cx, asked, MS_CHOOSE_VIRTUAL_STAGES, space->max_virtual_stages,
                          "--max-virtual-stages");
    if (asked->low[MS_CHOOSE_MICROBATCH] > space->max_microbatch)
        return above_text(cx, asked, MS_CHOOSE_MICROBATCH, space->max_microbatch,
                          "--max-microbatch");
    ms_choice fault =
        empty != MS_NUM_CHOICES ? empty : limit_at_fault(workload, space, asked, both);
    if (fault == MS_NUM_CHOICES)
        return "the limits of the search together leave no plan that matches";
    const char *limit = limit_text(cx, space, fault);
    if (empty == MS_NUM_CHOICES)
        return ms_arena_printf(cx->arena, "the limit %s leaves no plan that matches",
                               limit);
    return ms_arena_printf(cx->arena, "%s, and the search is limited to %s",
                           limit_text(cx, asked, empty), limit);
}
