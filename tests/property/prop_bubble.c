/* The bubble is one number: what a prediction states of the rank that ends the step last
 * is what simulations without sharing state, on random plans with pipelines of every
 * schedule. */
#include "sim/simulate/simulation.h"
#include "sim/step/prediction.h"
#include "tests/support/wide_plans.h"
#include "tests/test.h"

typedef struct bubble_case {
    const char *model, *stack, *cluster;
} bubble_case;
static const bubble_case cases[] = {{"llama-3.2-1b", "megatron", "hgx-h100"},
                                    {"llama-3.1-8b", "torchtitan", "hgx-h100"},
                                    {"qwen3-30b-a3b", "megatron", "gb200-nvl72"},
                                    {"gpt3-2.7b", "generic", "hgx-a100-80g"}};
#define NUM_CASES (int)(sizeof cases / sizeof *cases)

static ms_simulation simulate(ms_ctx *cx, const ms_planned *planned, ms_engine engine,
                              ms_detail detail)
{
    ms_simulation sim;
    const ms_simulate_options options = {
        .engine = engine, .detail = detail, .unshared = true};
    ASSERT_OK(ms_simulate(cx, planned, &options, &sim), cx);
    return sim;
}

/* Fails unless simulations by action have the prediction's bubble. Returns whether those
 * by node have it too, but for 1 % of the step and what their step times differ by: nodes
 * see waits for messages and for parameters that overlap, which actions have one after
 * the other. */
static bool check_plan(ms_ctx *cx, ms_workload *workload, const ms_plan *plan)
{
    ms_planned planned;
    ms_prediction p;
    bool near = true;
    ms_planned_open(cx, workload, plan, &planned);
    (void)ms_predict_planned(cx, &planned, &p);
    for (int engine = 0; engine < 2; engine++) {
        for (int detail = 0; detail < 2; detail++) {
            ms_simulation sim =
                simulate(cx, &planned, (ms_engine)engine, (ms_detail)detail);
            const ms_actor *last = &sim.actors[sim.last_actor];
            double apart_s = fabs(last->bubble_s - p.bubble_s);
            bool by_action = detail == MS_DETAIL_ACTION;
            near &= apart_s <= 0.01 * p.step_s + fabs(sim.step_s - p.step_s);
            if ((by_action && apart_s > 1e-9 * p.step_s) ||
                last->pipeline_rank != p.ending_rank)
                fail_msg("%s, %s: bubble %.9g s of rank %d, predicted %.9g s of rank %d",
                         plan->model, ms_plan_text(cx->arena, plan), last->bubble_s,
                         last->pipeline_rank, p.bubble_s, p.ending_rank);
        }
    }
    return near;
}

static void the_bubble_is_one_number(void **state)
{
    (void)state;
    int num = 0, num_near = 0;
    for (int i = 0; i < NUM_CASES; i++) {
        ms_ctx *cx = test_cx();
        ms_plan base = ms_plan_default(32);
        base.model = cases[i].model;
        base.stack = cases[i].stack;
        base.cluster = cases[i].cluster;
        base.sequence_length = 2048;
        ms_workload *workload;
        ASSERT_OK(ms_workload_open(cx, &base, &workload), cx);
        ms_rng rng = ms_rng_seed(61 + (uint64_t)i);
        for (int drawn = 0; drawn < TEST_CASES(15, 3);) {
            ms_arena_mark mark = ms_arena_save(cx->arena);
            ms_plan plan = ms_random_plan(&rng, workload, &base, 32);
            ms_widen_plan(cx, &rng, workload->model, &plan);
            if (plan.size[MS_PP] > 1) {
                num_near += check_plan(cx, workload, &plan);
                num++;
                drawn++;
            }
            ms_arena_rewind(cx->arena, mark);
        }
        ms_workload_close(workload);
    }
    if (num_near < 0.95 * num)
        fail_msg("by nodes %d of %d plans have the bubble of the prediction", num_near,
                 num);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bubble_is_one_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
