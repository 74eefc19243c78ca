/* Plans drawn at random from whole search spaces, which the search's best plan beats. */
#ifndef MS_TESTS_PROPERTY_RANDOM_CASES_H
#define MS_TESTS_PROPERTY_RANDOM_CASES_H

#include "sim/step/prediction.h"
#include "tests/frameworks/frameworks.h"
#include "tests/property/search_cases.h"
#include "tests/support/space_plans.h"

#include <math.h>

/* Whether the framework's own checks take the plan; true for stacks that have none. */
static inline bool is_accepted(const search_case *c, const ms_plan *plan,
                               const ms_model *model)
{
    bool has_checks = false;
    for (int i = 0; ms_framework_stacks[i] != NULL; i++)
        has_checks = has_checks || strcmp(ms_framework_stacks[i], c->stack) == 0;
    return !has_checks || ms_check_framework(c->stack, plan, model) == NULL;
}

/* Draws `num_plans` legal plans from the whole space of a case, every second one a
 * neighbour of the best: none that fits with probability 0.95 and that the framework's own
 * checks take is faster than the search's best plan. Returns how many do. */
static inline long draw_slower_plans(const search_case *c, long num_plans)
{
    ms_ctx *cx = test_cx();
    ms_space space;
    ms_workload *workload = open_case(cx, c, &space);
    ms_workload_set_memory_rule(workload, &(ms_memory_rule){.min_probability = 0.95});
    ms_search_result result = search_with(cx, workload, &space, 2, false);
    assert_true(result.optimal && result.num_found > 0);
    const ms_found *best = &result.found[0];
    ms_space_draw draw = ms_space_draw_open(cx->arena, &space, workload);
    ms_rng rng = ms_rng_seed(c->seed);
    long num_drawn = 0, num_legal = 0, num_fit = 0;
    double fastest_s = INFINITY;
    while (num_legal < num_plans) {
        ms_arena_mark mark = ms_arena_save(cx->arena);
        ms_plan plan;
        const ms_plan *near = num_drawn++ % 2 == 0 ? NULL : &best->plan;
        ms_prediction is;
        if (ms_space_draw_plan(&draw, &rng, near, &plan)) {
            num_legal++;
            ASSERT_OK(ms_predict(cx, workload, &plan, &is), cx);
            bool counts = is.fits && is_accepted(c, &plan, workload->model);
            num_fit += counts;
            fastest_s =
                counts && is.replay_step_s < fastest_s ? is.replay_step_s : fastest_s;
            if (counts && is.replay_step_s < best->step_s * (1.0 - 1e-9))
                fail_msg("%s: %s takes %.17g s, the best %.17g s", describe_case(cx, c),
                         ms_plan_text(cx->arena, &plan), is.replay_step_s, best->step_s);
        }
        ms_arena_rewind(cx->arena, mark);
    }
    print_message("  %-15s %5ld x %-12s %-10s %6ld drawn, %5ld legal, %5ld fit: fastest "
                  "%.4g s, search %.4g s\n",
                  c->model, c->gpus, c->cluster, c->stack, num_drawn, num_legal, num_fit,
                  fastest_s, best->step_s);
    ms_workload_close(workload);
    return num_fit;
}

#endif
