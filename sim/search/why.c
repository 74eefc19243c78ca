/* Answers --why PLAN, why a search did not choose a plan: finds the best plan with the
 * asked choices, and records what the exploration of its mesh decides about it. */
#include "sim/search/why.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "sim/search/why_priv.h"
#include "sim/step/framework_rules.h"

const char *const ms_why_verdict_names[] = {"refused",
                                            "outside the space",
                                            "does not fit",
                                            "listed",
                                            "dominated",
                                            "tied",
                                            "slower",
                                            "open",
                                            NULL};

long ms_why_count(ms_workload *workload, const ms_space *space, bool exactly)
{
    ms_explorer x = ms_explorer_open(workload, space, 1);
    long refused[MS_NUM_REFUSALS] = {0}, count = 0;
    ms_mesh_choice *meshes;
    int num = ms_space_meshes(space, workload->model, x.scratch, &meshes, refused);
    for (int i = 0; i < num && (exactly || count == 0); i++)
        count += ms_explore_count(&x, &meshes[i]);
    ms_explorer_close(&x);
    return count;
}

/* ---- the best completion ---- */

/* Finds the best plan of a space; false if it holds no plan, if the framework refuses all
 * that fit, or if the user interrupted the search before any was evaluated. */
static bool find_best(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                      const ms_search_options *options, ms_why *why)
{
    ms_search_options one = {.num_best = 1,
                             .num_threads = options->num_threads,
                             .interrupted = options->interrupted};
    ms_search_result result;
    (void)ms_search(cx, workload, space, &one, &result);
    if (result.num_found == 0 &&
        (!isfinite(result.least_needed_bytes) ||
         ms_workload_broken_rule(workload, &result.least_plan) != NULL))
        return false;
    why->plan = result.num_found > 0 ? result.found[0].plan : result.least_plan;
    why->is_partial = !result.optimal;
    if (!why->home.fixed_order)
        ms_space_plain_order(&why->plan);
    why->num_plans = ms_why_count(workload, space, true);
    return true;
}

/* Whether two spaces fix equal orders of the axes that may be larger than 1. */
static bool same_order(const ms_space *both, const ms_space *asked)
{
    unsigned char active[2][MS_NUM_PLAN_AXES];
    int num[2] = {0, 0};
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        const unsigned char axes[2] = {both->base.order[i], asked->base.order[i]};
        for (int k = 0; k < 2; k++)
            if (both->high[MS_CHOOSE_PP + axes[k]] != 1)
                active[k][num[k]++] = axes[k];
    }
    return num[0] == num[1] && memcmp(active[0], active[1], (size_t)num[0]) == 0;
}

/* Fixes the order of axes that the question states; false if the space fixes another. */
static bool fix_order(const ms_space *space, const ms_space *asked, ms_space *both)
{
    if (!asked->fixed_order)
        return true;
    if (space->fixed_order)
        return same_order(both, asked);
    both->fixed_order = true;
    memcpy(both->base.order, asked->base.order, sizeof both->base.order);
    return true;
}

/* Space of the asked plans. Its max_* are those of `space`, or larger asked values. */
static ms_space widened(const ms_space *space, const ms_space *asked)
{
    ms_space wide = *asked;
    long v = asked->low[MS_CHOOSE_VIRTUAL_STAGES],
         microbatch = asked->low[MS_CHOOSE_MICROBATCH];
    wide.max_virtual_stages =
        v > space->max_virtual_stages ? v : space->max_virtual_stages;
    wide.max_microbatch =
        microbatch > space->max_microbatch ? microbatch : space->max_microbatch;
    return wide;
}

/* Finds the best plan with the asked choices: in `space`, or if it has none, outside. */
static bool find_plan(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                      const ms_search_options *options, const ms_space *asked,
                      ms_why *why)
{
    ms_choice empty;
    ms_space both = ms_space_both(space, asked, &empty);
    bool ordered = fix_order(space, asked, &both);
    why->home = *space;
    if (empty == MS_NUM_CHOICES && ordered &&
        find_best(cx, workload, &both, options, why))
        return true;
    if (ms_is_interrupted(options->interrupted))
        return false;
    why->home = *asked;
    if (!find_best(cx, workload, asked, options, why))
        return false;
    why->excluded = !ordered ? "--order fixes another order of the axes"
                             : ms_why_excluded(cx, workload, space, asked, &both, empty);
    return true;
}

ms_status ms_why_ask(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                     const ms_search_options *options, const ms_why_question *question,
                     ms_why *out)
{
    *out = (ms_why){.question = question};
    ms_space asked = widened(space, &question->asked);
    out->has_plan = find_plan(cx, workload, space, options, &asked, out);
    if (!out->has_plan && !ms_is_interrupted(options->interrupted)) {
        const char *untried = ms_why_no_plan(cx, workload, &asked, out);
        out->has_plan =
            untried != NULL && find_plan(cx, workload, space, options, &asked, out);
        out->excluded = untried;
        out->is_another = untried != NULL;
    }
    return out->has_plan ? ms_predict(cx, workload, &out->plan, &out->prediction) : MS_OK;
}

/* ---- the plan's way through the search ---- */

static ms_mesh_choice mesh_of(const ms_plan *plan)
{
    ms_mesh_choice mesh = {.ep = plan->ep, .etp = plan->etp};
    memcpy(mesh.size, plan->size, sizeof mesh.size);
    return mesh;
}

/* A space that holds one plan; if that recomputes some layers in full, also the plans
 * that recompute fewer. */
static ms_space space_of(const ms_space *space, const ms_plan *plan)
{
    ms_space one = *space;
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++)
        if (ms_plan_fields[i].search == MS_SEARCH_TRIES)
            one.low[i] = one.high[i] = ms_plan_get(plan, i);
    one.fixed_order = true;
    memcpy(one.base.order, plan->order, sizeof one.base.order);
    one.keep_frac = 1.0;
    one.max_virtual_stages = plan->virtual_stages;
    one.max_microbatch = plan->microbatch;
    return one;
}

static void follow(ms_workload *workload, const ms_space *space, int capacity,
                   double threshold_s, ms_watch *watch)
{
    ms_explorer x = ms_explorer_open(workload, space, capacity);
    ms_mesh_choice mesh = mesh_of(&watch->plan);
    x.watch = watch;
    ms_explore_mesh(&x, &mesh, threshold_s);
    ms_explorer_close(&x);
}

static double mesh_bound_s(ms_workload *workload, const ms_space *space,
                           const ms_plan *plan)
{
    ms_mesh_choice mesh = mesh_of(plan);
    ms_explorer x = ms_explorer_open(workload, space, 1);
    double bound_s = ms_explore_bound_s(&x, &mesh, NULL);
    ms_explorer_close(&x);
    return bound_s;
}

static bool same_mesh(const ms_plan *a, const ms_plan *b)
{
    return memcmp(a->size, b->size, sizeof a->size) == 0 && a->ep == b->ep &&
           a->etp == b->etp;
}

static void find_ranks(const ms_search_result *result, ms_why *why)
{
    for (int i = result->num_found - 1; i >= 0; i--) {
        const ms_plan *plan = &result->found[i].plan;
        if (ms_plan_equal(plan, &why->among.plan))
            why->rank = i + 1;
        if (same_mesh(plan, &why->plan))
            why->mesh_rank = i + 1;
    }
}

/* Watches the plan (why->among) in the order of axes that the search tries instead. */
static void choose_order(const ms_workload *workload, ms_why *why)
{
    ms_plan tried = why->plan;
    (void)ms_space_order_like(&why->home, &why->plan, workload, tried.order);
    ms_watch_start(&why->among, &tried);
    why->is_stand_in = !ms_space_same_order(&why->plan, tried.order);
}

static ms_why_verdict judge(const ms_search_result *result, const ms_why *why)
{
    if (!why->prediction.fits)
        return MS_WHY_NO_FIT;
    if (why->rank > 0)
        return MS_WHY_LISTED;
    bool dominated =
        why->among.fate == MS_FATE_UNNEEDED || why->among.fate == MS_FATE_ASYNC;
    if (dominated && !why->mesh_ruled_out)
        return MS_WHY_DOMINATED;
    if (why->mesh_rank > 0 &&
        !(why->prediction.step_s > result->found[why->mesh_rank - 1].step_s))
        return MS_WHY_TIED;
    bool may_enter = !(why->prediction.step_s > why->threshold_s) &&
                     why->mesh_rank == 0 && !why->among.by_mesh;
    return may_enter && !result->optimal ? MS_WHY_OPEN : MS_WHY_SLOWER;
}

static void follow_plan(const ms_why_context *known, ms_why *why)
{
    const ms_search_options *options = known->options;
    ms_space one = space_of(&why->home, &why->plan);
    ms_watch_start(&why->alone, &why->plan);
    why->mesh_bound_s = mesh_bound_s(known->workload, &why->home, &why->plan);
    why->mesh_ruled_out = why->mesh_bound_s > why->threshold_s;
    follow(known->workload, &one, 1, INFINITY, &why->alone);
    choose_order(known->workload, why);
    int capacity = options->variants ? options->num_best : 1;
    follow(known->workload, &why->home, capacity, why->threshold_s, &why->among);
    find_ranks(known->result, why);
}

ms_status ms_why_answer(const ms_why_context *known, ms_why *why)
{
    why->threshold_s = known->result->threshold_s;
    why->verdict = why->refused != NULL    ? MS_WHY_REFUSED
                   : why->excluded != NULL ? MS_WHY_OUTSIDE
                                           : MS_WHY_OPEN;
    if (why->has_plan)
        follow_plan(known, why);
    if (why->has_plan && why->excluded == NULL)
        why->verdict = judge(known->result, why);
    return ms_why_write_stages(known, why);
}
