/* How kernels are launched, of random plans of small models: nodes and actions take the
 * same time, the bound holds, waits by block sum to the host's part of the step, and
 * fewer launches never make a step longer. */
#include "sim/simulate/simulation.h"
#include "sim/step/prediction.h"

#include "tests/support/random_plans.h"
#include "tests/test.h"

#define NUM_PLANS   TEST_CASES(60, 12)
#define WITHIN_FRAC 0.01

typedef struct way {
    ms_compile compile;
    ms_cuda_graphs graphs;
} way;

/* Ways to launch, each with no more host time and no more traffic than the one before. */
static const way ways[] = {{MS_COMPILE_NONE, MS_GRAPHS_NONE},
                           {MS_COMPILE_REGIONAL, MS_GRAPHS_NONE},
                           {MS_COMPILE_FULL, MS_GRAPHS_NONE},
                           {MS_COMPILE_FULL, MS_GRAPHS_FULL}};
#define NUM_WAYS (sizeof ways / sizeof *ways)

static const ms_plan_subject subjects[] = {
    {"llama-3.2-1b", "hgx-h100", "torchtitan", "dense", 16},
    {"smollm2-135m", "hgx-h100", "torchtitan", "dense", 16},
    {"tinyllama-1.1b", "hgx-a100-80g", "generic", "dense", 16}};

static void check_parts(const ms_prediction *p)
{
    double sum_s = 0.0;
    for (int block = 0; block < MS_NUM_BLOCK_KINDS; block++)
        for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++)
            sum_s += p->host.wait_s[block][pass];
    assert_true(fabs(sum_s - p->host_s) <= 1e-9 * p->step_s);
    assert_true(p->host.launches > 0.0);
    assert_true(p->bound_s <= p->step_s * (1.0 + 1e-9));
    double parts_s =
        p->compute_s + p->exposed_comm_s + p->bubble_s + p->optimizer_s + p->host_s;
    ASSERT_NEAR(parts_s, p->step_s, 1e-6);
}

/* The prediction of a plan, and whether the replay of its nodes takes as long. */
static ms_prediction priced(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                            int *num_agreeing)
{
    const ms_simulate_options options = {
        .engine = MS_ENGINE_REPLAY, .detail = MS_DETAIL_NODE, .unshared = true};
    ms_planned planned;
    ms_prediction prediction;
    ms_simulation nodes;
    ms_planned_open(cx, workload, plan, &planned);
    (void)ms_predict_planned(cx, &planned, &prediction);
    check_parts(&prediction);
    ASSERT_OK(ms_simulate(cx, &planned, &options, &nodes), cx);
    double frac = fabs(nodes.step_s / nodes.predicted_step_s - 1.0);
    *num_agreeing += frac <= WITHIN_FRAC;
    return prediction;
}

typedef struct subject {
    ms_plan base;
    ms_workload *workload[NUM_WAYS];
    int num, num_agreeing, num_faster; /* priced; as nodes; by a tenth and more */
} subject;

static void open_subject(ms_ctx *cx, const ms_plan_subject *from, subject *out)
{
    ms_workload *unused;
    *out = (subject){0};
    ASSERT_OK(ms_plan_subject_open(cx, from, &out->base, &unused), cx);
    ms_workload_close(unused);
    for (size_t w = 0; w < NUM_WAYS; w++) {
        ms_plan plan = out->base;
        plan.compile = ways[w].compile;
        plan.cuda_graphs = ways[w].graphs;
        ASSERT_OK(ms_workload_open(cx, &plan, &out->workload[w]), cx);
    }
}

/* All ways have the layers per stage of the first: other times divide them otherwise. */
static void price_ways(ms_ctx *cx, subject *s, ms_plan plan)
{
    double before_s = (double)INFINITY;
    for (size_t w = 0; w < NUM_WAYS; w++) {
        plan.compile = ways[w].compile;
        plan.cuda_graphs = ways[w].graphs;
        ms_prediction p = priced(cx, s->workload[w], &plan, &s->num_agreeing);
        double step_s = p.step_s;
        plan.num_stage_layers = p.num_stage_layers;
        plan.layers_per_stage = p.layers_per_stage;
        s->num++;
        if (step_s > before_s * (1.0 + 1e-6))
            fail_msg("%s, %s: %.6g s after %.6g s", plan.model,
                     ms_plan_text(cx->arena, &plan), step_s, before_s);
        s->num_faster += w > 0 && step_s < 0.9 * before_s;
        before_s = step_s;
    }
}

static void fewer_launches_are_no_slower_by_any_engine(void **state)
{
    (void)state;
    int num_agreeing = 0, num = 0, num_faster = 0;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        ms_ctx *cx = test_cx();
        subject s;
        open_subject(cx, &subjects[i], &s);
        ms_rng rng = ms_rng_seed(77 + (uint64_t)i);
        for (int drawn = 0; drawn < NUM_PLANS; drawn++) {
            ms_arena_mark mark = ms_arena_save(cx->arena);
            price_ways(cx, &s, ms_random_plan(&rng, s.workload[0], &s.base, s.base.gpus));
            ms_arena_rewind(cx->arena, mark);
        }
        num += s.num;
        num_agreeing += s.num_agreeing;
        num_faster += s.num_faster;
        for (size_t w = 0; w < NUM_WAYS; w++)
            ms_workload_close(s.workload[w]);
    }
    assert_true(num_faster > 0); /* small models wait for their host */
    if (num_agreeing < 0.97 * num)
        fail_msg("%d of %d plans take the same time by nodes and by actions",
                 num_agreeing, num);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_launches_are_no_slower_by_any_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
