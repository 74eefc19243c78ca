/* Cases in which the plan search is compared with brute force: a model on so many
 * GPUs, with a search space from which random plans may be removed. */
#ifndef MS_TESTS_PROPERTY_SEARCH_CASES_H
#define MS_TESTS_PROPERTY_SEARCH_CASES_H

#include "sim/search/search.h"

#include "tests/test.h"

#include <string.h>

typedef struct search_case {
    const char *model, *stack, *cluster;
    long gpus, global_batch;
    unsigned long seed; /* seed of the random removal of plans */
    double keep_frac;
    /* NULL-ended, as ms_space_limit takes them; first perhaps "shards": all plans have
     * units of 3 layers, copies of parameters on 4 ranks and partitioned layer inputs */
    const char *limits[4];
} search_case;

static inline const char *describe_case(ms_ctx *cx, const search_case *c)
{
    return ms_arena_printf(
        cx->arena, "%s on %ld %s, stack %s, batch %ld, keep %g, seed %lu", c->model,
        c->gpus, c->cluster, c->stack, c->global_batch, c->keep_frac, c->seed);
}

static inline bool moves_shards(const search_case *c)
{
    return c->limits[0] != NULL && strcmp(c->limits[0], "shards") == 0;
}

static inline ms_plan case_plan(const search_case *c)
{
    ms_plan plan = ms_plan_default(c->gpus);
    plan.model = c->model;
    plan.stack = c->stack;
    plan.cluster = c->cluster;
    plan.global_batch = c->global_batch;
    if (moves_shards(c)) {
        plan.unit_layers = 3;
        plan.reshard_ranks = 4;
        plan.partition_activations = true;
    }
    return plan;
}

/* Opens the case's workload and search space; the caller closes the workload. */
static inline ms_workload *open_case(ms_ctx *cx, const search_case *c, ms_space *space)
{
    ms_plan plan = case_plan(c);
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
    if (workload->model->position == MS_POSITION_LEARNED &&
        plan.sequence_length > workload->model->max_positions)
        plan.sequence_length = workload->sequence_length = workload->model->max_positions;
    *space = ms_space_all(&plan, workload->stack);
    space->keep_frac = c->keep_frac;
    space->seed = c->seed;
    for (int i = moves_shards(c); c->limits[i] != NULL; i++)
        ASSERT_OK(ms_space_limit(cx, space, c->limits[i]), cx);
    return workload;
}

static inline ms_search_result search_with(ms_ctx *cx, ms_workload *workload,
                                           const ms_space *space, int num_threads,
                                           bool exhaustive)
{
    ms_search_options options = {
        .num_best = 10, .num_threads = num_threads, .exhaustive = exhaustive};
    ms_search_result result;
    ms_status status = ms_search(cx, workload, space, &options, &result);
    assert_true(status == MS_OK || status == MS_ENOFIT);
    const ms_counts *n = &result.counts;
    ASSERT_INT(n->configurations,
               n->replayed + n->over_memory + n->over_bound + n->dominated);
    return result;
}

/* Both searches found the same plans in the same order, with bitwise equal times and
 * peaks. */
static inline void expect_same_found(ms_ctx *cx, const ms_search_result *got,
                                     const ms_search_result *want, const char *label)
{
    if (got->num_found != want->num_found)
        fail_msg("%s: found %d plans, want %d", label, got->num_found, want->num_found);
    for (int i = 0; i < want->num_found; i++) {
        const ms_found *g = &got->found[i], *w = &want->found[i];
        bool same = memcmp(&g->step_s, &w->step_s, sizeof g->step_s) == 0 &&
                    memcmp(&g->peak_bytes, &w->peak_bytes, sizeof g->peak_bytes) == 0 &&
                    ms_plan_equal(&g->plan, &w->plan);
        if (!same)
            fail_msg("%s: plan %d is\n  %s: %.17g s, %.17g bytes, want\n  %s: %.17g s, "
                     "%.17g bytes",
                     label, i, ms_plan_text(cx->arena, &g->plan), g->step_s,
                     g->peak_bytes, ms_plan_text(cx->arena, &w->plan), w->step_s,
                     w->peak_bytes);
    }
}

/* Both searches found the same plans; where no plan fits, they report the same least
 * memory of a device. */
static inline void expect_same_search(ms_ctx *cx, const ms_search_result *got,
                                      const ms_search_result *want, const char *label)
{
    expect_same_found(cx, got, want, label);
    if (want->num_found == 0)
        ASSERT_NEAR(got->least_needed_bytes, want->least_needed_bytes, 0);
}

/* The search finds what brute force finds, where plans fit by a rule. Returns the number
 * of plans that brute force looked at. */
static inline long compare_by_rule(const search_case *c, const ms_memory_rule *rule,
                                   int num_threads)
{
    ms_ctx *cx = test_cx();
    ms_space space;
    ms_workload *workload = open_case(cx, c, &space);
    const char *label =
        ms_arena_printf(cx->arena, "%s, fit %g, headroom %g", describe_case(cx, c),
                        rule->min_probability, rule->headroom_frac);
    ms_workload_set_memory_rule(workload, rule);
    ms_search_result all = search_with(cx, workload, &space, num_threads, true);
    ms_search_result quick = search_with(cx, workload, &space, num_threads, false);
    assert_true(all.optimal && quick.optimal);
    expect_same_found(cx, &quick, &all, label);
    if (all.num_found == 0 && all.counts.evaluated > 0 &&
        quick.least_needed_bytes < all.least_needed_bytes)
        fail_msg("%s: search says that %.17g bytes suffice, brute force %.17g", label,
                 quick.least_needed_bytes, all.least_needed_bytes);
    ms_workload_close(workload);
    return all.counts.evaluated;
}

static inline long compare_with_brute_force(const search_case *c, int num_threads)
{
    return compare_by_rule(c, &(ms_memory_rule){0}, num_threads);
}

#endif
