/* Mixed clusters and slow nodes: the search against brute force, splits of layers against
 * all splits, engines against each other, and what follows by arithmetic alone. */
#include "sim/simulate/simulation.h"
#include "sim/step/prediction.h"
#include "sim/step/split.h"

#include "tests/property/search_cases.h"
#include "tests/support/random_plans.h"

#include <math.h>

#define MIXED MS_SOURCE_DIR "/tests/data/mixed_cluster.json"
#define SMALL MS_SOURCE_DIR "/tests/data/mixed_small_memory.json"

/* ---- search ---- */

static const search_case cases[] = {
    {"llama-3.2-1b", "megatron", MIXED, 16, 16, 0, 1.0, {"tp<=2", NULL}},
    {"8b", "megatron", MIXED, 16, 32, 0, 1.0, {"pp>=2", "mbs<=2", NULL}},
    {"8b", "generic", SMALL, 16, 16, 0, 1.0, {"cp=1", "mbs=1", "pp>=2", NULL}},
    {"qwen3-30b-a3b", "megatron", MIXED, 16, 16, 0, 1.0, {"cp=1", "pp>=2", NULL}},
    {"8b",
     "generic",
     MIXED,
     16,
     16,
     0,
     1.0,
     {"device_order=reversed", "cp=1", "mbs=1", NULL}},
};
#define NUM_CASES (sizeof cases / sizeof *cases)

static void search_equals_brute_force(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_CASES; i += TEST_CASES(1, 2))
        assert_true(compare_with_brute_force(&cases[i], 2) > 50000);
}

/* Plans that a search finds by a memory rule are predicted alike by themselves, without the
 * rule, and fit each device; moved layers make the fastest no slower. */
static void found_plans_are_predicted_alike(void **state)
{
    (void)state;
    static const ms_memory_rule rules[] = {
        {0}, {.min_probability = MS_DEFAULT_MIN_FIT}, {.headroom_frac = 0.3}};
    int num_reversed = 0, num_found = 0, num_stated = 0;
    for (size_t i = 0; i < 3 * NUM_CASES; i++) {
        ms_ctx *cx = test_cx();
        ms_space space;
        ms_workload *workload = open_case(cx, &cases[i / 3], &space);
        ms_workload_set_memory_rule(workload, &rules[i % 3]);
        ms_search_result result = search_with(cx, workload, &space, 1, false);
        if (result.num_found > 0)
            assert_true(result.found[0].step_s <= result.balanced_step_s * (1.0 + 1e-9));
        ms_workload_set_memory_rule(workload, &(ms_memory_rule){0});
        for (int k = 0; k < result.num_found; k++) {
            ms_prediction is;
            ASSERT_OK(ms_predict(cx, workload, &result.found[k].plan, &is), cx);
            ASSERT_NEAR(result.found[k].step_s, is.replay_step_s, 1e-9);
            assert_true(is.fits);
            num_reversed += result.found[k].plan.device_order == MS_DEVICES_REVERSED;
            num_stated += result.found[k].plan.num_stage_layers > 0;
            for (int s = 0; s < is.num_stages; s++)
                assert_true(is.stages[s].peak_bytes <=
                            is.stages[s].capacity_bytes *
                                (1.0 - rules[i % 3].headroom_frac));
        }
        num_found += result.num_found;
        ms_workload_close(workload);
    }
    assert_true(num_found > 10 && num_stated > 0);
    assert_true(num_reversed > 0 && num_reversed < num_found);
}

/* ---- splits ---- */

static ms_plan pipeline_plan(const char *cluster, long pp)
{
    ms_plan plan = ms_plan_default(16);
    plan.model = "llama-3.2-1b"; /* 16 layers */
    plan.cluster = cluster;
    plan.stack = "generic";
    plan.size[MS_PP] = pp;
    plan.size[MS_DP_SHARD] = 16 / pp;
    plan.global_batch = 64;
    plan.recompute = MS_RECOMPUTE_NONE;
    return plan;
}

/* The least step of the splits of a plan that fit, by prediction of every one. */
typedef struct every_split {
    ms_ctx *cx;
    ms_workload *workload;
    ms_plan plan;
    double least_s; /* infinite: none fits */
    long layers[4];
} every_split;

static void try_splits(every_split *e, long stage, long left)
{
    long stages = e->plan.num_stage_layers;
    if (stage < stages - 1) {
        for (long num = 1; num <= left - (stages - 1 - stage); num++) {
            e->layers[stage] = num;
            try_splits(e, stage + 1, left - num);
        }
        return;
    }
    e->layers[stage] = left;
    ms_arena_mark mark = ms_arena_save(e->cx->arena);
    ms_prediction is;
    ASSERT_OK(ms_predict(e->cx, e->workload, &e->plan, &is), e->cx);
    if (is.fits)
        e->least_s = fmin(e->least_s, is.step_s);
    ms_arena_rewind(e->cx->arena, mark);
}

/* The step with the layers that balance compute alone; infinite if they do not fit. */
static double balanced_s(ms_ctx *cx, ms_workload *workload, const ms_planned *p)
{
    ms_plan plan = *p->plan;
    ms_schedule_shape shape = ms_plan_shape(&plan);
    const ms_split *split =
        ms_workload_split(workload, p->bills, &shape, p->pipeline.split->kinds);
    plan.num_stage_layers = split->num_stages;
    plan.layers_per_stage = split->layers;
    ms_prediction is;
    ASSERT_OK(ms_predict(cx, workload, &plan, &is), cx);
    return is.fits ? is.step_s : (double)INFINITY;
}

typedef struct split_counts {
    int tried, improved, equal;
    double worst_frac[2]; /* shares like tolerance_frac */
} split_counts;

/* Most by which a step may be longer than with the best split: where ranks have stages from
 * both ends of the model, and where stages go round the ranks. Moves of a layer or two find
 * the best split of most plans, but not of all. */
static const double tolerance_frac[2] = {0.03, 0.001};

/* Compares the layers of one plan with all others. */
static void compare_splits(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                           split_counts *counts)
{
    ms_planned p;
    ms_planned_open(cx, workload, plan, &p);
    const ms_split *split = p.pipeline.split;
    if (!ms_divides_layers(workload, &p.pipeline.shape, split->kinds) ||
        split->num_stages > 4 ||
        (split->num_stages > 2 && counts->tried % 2 == 1 &&
         workload->model->num_layers > 16))
        return;
    ms_prediction is;
    ASSERT_OK(ms_predict(cx, workload, plan, &is), cx);
    every_split e = {
        .cx = cx, .workload = workload, .plan = *plan, .least_s = (double)INFINITY};
    e.plan.num_stage_layers = split->num_stages;
    e.plan.layers_per_stage = e.layers;
    try_splits(&e, 0, workload->model->num_layers);
    double before_s = balanced_s(cx, workload, &p);
    const char *text = ms_plan_text(cx->arena, plan);
    if (is.fits != isfinite(e.least_s))
        fail_msg("%s: fits %d, and the best split %d", text, is.fits,
                 isfinite(e.least_s));
    bool loops = ms_schedule_placement(plan->schedule) == MS_PLACE_LOOP;
    double late_frac = is.fits ? is.step_s / e.least_s - 1.0 : 0.0;
    counts->worst_frac[loops] = fmax(counts->worst_frac[loops], late_frac);
    if (late_frac > tolerance_frac[loops])
        fail_msg("%s: %.6g s, the best split %.6g s", text, is.step_s, e.least_s);
    assert_true(!isfinite(before_s) || is.step_s <= before_s * (1.0 + 1e-9));
    counts->tried++;
    counts->improved += is.fits && is.step_s < before_s * (1.0 - 1e-6);
    counts->equal += !is.fits || is.step_s <= e.least_s * (1.0 + 1e-9);
}

/* Layers of stages on unlike devices make the step as short as any split that fits does,
 * and no longer than layers that balance compute do. */
static void no_split_that_fits_has_a_shorter_step(void **state)
{
    (void)state;
    static const struct {
        const char *model, *cluster;
        long gpus;
    } subjects[] = {{"llama-3.2-1b", MIXED, 16}, {"8b", SMALL, 16}, {"8b", MIXED, 16}};
    split_counts counts = {0};
    for (int i = 0; i < 3; i++) {
        ms_ctx *cx = test_cx();
        ms_plan base = ms_plan_default(16);
        base.model = subjects[i].model;
        base.cluster = subjects[i].cluster;
        base.stack = "generic";
        base.global_batch = 32;
        ms_workload *workload;
        ASSERT_OK(ms_workload_open(cx, &base, &workload), cx);
        ms_workload_set_memory_rule(workload, &(ms_memory_rule){.min_probability = 0.95});
        ms_rng rng = ms_rng_seed(31 + (uint64_t)i);
        for (int drawn = 0; drawn < TEST_CASES(60, 15); drawn++) {
            ms_arena_mark mark = ms_arena_save(cx->arena);
            ms_plan plan = ms_random_plan(&rng, workload, &base, 16);
            plan.device_order = (ms_device_order)(drawn % 2);
            compare_splits(cx, workload, &plan, &counts);
            ms_arena_rewind(cx->arena, mark);
        }
        ms_workload_close(workload);
    }
    printf("splits: %d plans, %d equal the best, %d improved; "
           "worst %.4f, of loops %.4f\n",
           counts.tried, counts.equal, counts.improved, counts.worst_frac[0],
           counts.worst_frac[1]);
    assert_true(counts.equal >= 0.75 * counts.tried);
    assert_true(counts.improved > 0);
}

/* Plans whose stages lack memory with balanced compute fit with layers on other stages. */
static void layers_move_to_the_stage_with_room(void **state)
{
    (void)state;
    int num_made_to_fit = 0;
    for (int i = 0; i < 48; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = pipeline_plan(i % 2 == 0 ? MIXED : SMALL, 2);
        plan.model = "8b";
        plan.device_order = (ms_device_order)(i / 2 % 2);
        plan.zero = i / 4 % 4;
        plan.reshard_after_forward = true;
        plan.microbatch = 1L << i / 16;
        ms_workload *workload;
        ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
        ms_planned p;
        ms_planned_open(cx, workload, &plan, &p);
        ms_prediction is;
        ASSERT_OK(ms_predict(cx, workload, &plan, &is), cx);
        bool fitted = isfinite(balanced_s(cx, workload, &p));
        assert_true(is.fits || !fitted);
        num_made_to_fit += is.fits && !fitted;
        ms_workload_close(workload);
    }
    assert_true(num_made_to_fit > 0);
}

/* Between two stages layers divide as the speeds do: the ranks end within a layer. */
static void layers_divide_as_speeds_do(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = pipeline_plan(MIXED, 2);
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
    ms_planned p;
    ms_planned_open(cx, workload, &plan, &p);
    const ms_bill *slow = ms_planned_layer_bill(&p, 1, 0);
    const ms_bill *fast = ms_planned_layer_bill(&p, 0, 0);
    double slow_s = slow->compute_s[0] + slow->compute_s[1];
    double fast_s = fast->compute_s[0] + fast->compute_s[1];
    assert_true(slow_s > 1.5 * fast_s);
    double stage_s[2];
    for (int s = 0; s < 2; s++) {
        const ms_block_cost *sum = &ms_planned_stage(&p, s)->sum;
        stage_s[s] = sum->forward_compute_s + sum->backward_compute_s;
    }
    /* the last rank has m micro-batches after one on the first, which has m of its own */
    double m = ms_schedule_stage_microbatches(&p.pipeline.shape);
    assert_true(fabs(m * (stage_s[0] - stage_s[1]) - stage_s[0]) <= m * slow_s);
    ms_workload_close(workload);
}

/* ---- engines ---- */

static void engines_agree_on_mixed_clusters(void **state)
{
    (void)state;
    static const char *const clusters[] = {MIXED, SMALL};
    static const char *const models[] = {"llama-3.2-1b", "qwen3-30b-a3b"};
    int num_agreeing = 0, num = 0;
    for (int i = 0; i < 2; i++) {
        ms_ctx *cx = test_cx();
        ms_plan base = ms_plan_default(16);
        base.model = models[i];
        base.cluster = clusters[i];
        base.stack = "generic";
        base.global_batch = 32;
        ms_workload *workload;
        ASSERT_OK(ms_workload_open(cx, &base, &workload), cx);
        ms_rng rng = ms_rng_seed(77 + (uint64_t)i);
        for (int drawn = 0; drawn < TEST_CASES(150, 20); drawn++) {
            ms_arena_mark mark = ms_arena_save(cx->arena);
            ms_plan plan = ms_random_plan(&rng, workload, &base, 16);
            plan.device_order = (ms_device_order)(drawn % 2);
            ms_planned planned;
            ms_planned_open(cx, workload, &plan, &planned);
            ms_prediction is;
            ASSERT_OK(ms_predict(cx, workload, &plan, &is), cx);
            assert_true(is.bound_s <= is.step_s);
            ms_simulation actions, nodes;
            ms_simulate_options options = {.engine = MS_ENGINE_REPLAY,
                                           .detail = MS_DETAIL_ACTION};
            ASSERT_OK(ms_simulate(cx, &planned, &options, &actions), cx);
            ASSERT_NEAR(actions.step_s, is.step_s, 1e-12);
            options.detail = MS_DETAIL_NODE;
            options.engine = MS_ENGINE_EVENT; /* shares nothing on mixed clusters */
            ASSERT_OK(ms_simulate(cx, &planned, &options, &nodes), cx);
            double frac = fabs(nodes.step_s / is.step_s - 1.0);
            if (frac > 0.12)
                fail_msg("%s: nodes %.4g s, actions %.4g s",
                         ms_plan_text(cx->arena, &plan), nodes.step_s, is.step_s);
            num_agreeing += frac <= 0.01;
            num++;
            ms_arena_rewind(cx->arena, mark);
        }
        ms_workload_close(workload);
    }
    assert_true(num_agreeing >= 0.95 * num);
}

/* ---- arithmetic ---- */

static ms_prediction predict_slow(ms_ctx *cx, const ms_plan *base, const char *slow)
{
    ms_plan plan = *base;
    plan.slow_nodes = slow;
    ms_workload *workload;
    ms_prediction is;
    ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
    ASSERT_OK(ms_predict(cx, workload, &plan, &is), cx);
    ms_workload_close(workload);
    return is;
}

/* All data-parallel ranks wait for a slow node: its compute takes 1 / 0.8 as long. */
static void a_slow_node_slows_all_replicas(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = pipeline_plan("hgx-h100", 1);
    ms_prediction even = predict_slow(cx, &plan, NULL);
    ms_prediction slow = predict_slow(cx, &plan, "1:0.8");
    ASSERT_NEAR(slow.compute_s, even.compute_s / 0.8, 1e-12);
    assert_true(slow.step_s > even.step_s && slow.step_s <= even.step_s / 0.8);
    ASSERT_NEAR(slow.peak_bytes, even.peak_bytes, 0);
    ASSERT_NEAR(slow.mfu_frac * slow.step_s, even.mfu_frac * even.step_s, 1e-12);
    ms_prediction links = predict_slow(cx, &plan, "0:1:0.5");
    ASSERT_NEAR(links.compute_s, even.compute_s, 1e-12);
    assert_true(links.step_s > even.step_s);
    /* a node that the job does not use */
    ms_prediction other = predict_slow(cx, &plan, "2:0.5");
    ASSERT_NEAR(other.step_s, even.step_s, 0);
}

/* Layers are divided as without slow nodes, and the slow stage of two takes 1 / 0.5 as
 * long, the other as long as before: a slow node never makes a step shorter. */
static void slow_nodes_leave_the_layers(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = pipeline_plan("hgx-h100", 2);
    ms_prediction slow = predict_slow(cx, &plan, "0:0.5");
    ms_prediction even = predict_slow(cx, &plan, NULL);
    ASSERT_INT(slow.layers_per_stage[0], even.layers_per_stage[0]);
    assert_true(slow.step_s > even.step_s);
    ASSERT_NEAR(slow.stages[1].forward_s, even.stages[1].forward_s, 1e-12);
    assert_true(slow.stages[0].forward_s > 1.5 * even.stages[0].forward_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_split_that_fits_has_a_shorter_step),
        cmocka_unit_test(layers_move_to_the_stage_with_room),
        cmocka_unit_test(layers_divide_as_speeds_do),
        cmocka_unit_test(engines_agree_on_mixed_clusters),
        cmocka_unit_test(a_slow_node_slows_all_replicas),
        cmocka_unit_test(slow_nodes_leave_the_layers),
        cmocka_unit_test(found_plans_are_predicted_alike),
        cmocka_unit_test(search_equals_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
