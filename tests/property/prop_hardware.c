/* Worse hardware in the three commands: with oversubscribed leaves, slow links or slow
 * devices predict, search and simulate all say that a plan's step takes longer, or as
 * long, and their step times grow together (docs/formulas 6.10). */
#include "sim/search/search.h"
#include "sim/simulate/simulation.h"
#include "sim/step/prediction.h"

#include "tests/test.h"

/* Limit of the relative difference between simulate with shared links and predict on the
 * same hardware; prop_engines has the same for 95 of 100 plans. */
#define MOST_FRAC 0.05
#define ROUNDING  1e-9
/* Share of a step by which other sharing of links may lengthen it. */
#define MOST_SHARING_FRAC 0.01

typedef struct hardware_case {
    const char *model, *cluster, *stack;
    long size[MS_NUM_PLAN_AXES], ep;
    long global_batch, zero;
    ms_schedule_kind schedule;
    long virtual_stages;
} hardware_case;

static const hardware_case cases[] = {
    {"llama-3.1-8b", "hgx-h100", "megatron", {1, 1, 64, 1, 1}, 1, 128, 3, MS_1F1B, 1},
    {"llama-3.1-8b", "hgx-h100", "generic", {2, 1, 4, 1, 8}, 1, 64, 1, MS_1F1B, 1},
    {"llama-3.1-70b",
     "hgx-h100",
     "torchtitan",
     {4, 1, 4, 1, 4},
     1,
     64,
     2,
     MS_INTERLEAVED,
     2},
    {"qwen3-30b-a3b", "hgx-b200", "generic", {1, 1, 64, 1, 1}, 32, 128, 1, MS_1F1B, 1},
    {"llama-3.1-8b", "hgx-a100-80g", "nanotron", {2, 16, 1, 1, 2}, 1, 64, 0, MS_1F1B, 1},
};
#define NUM_CASES ((int)(sizeof cases / sizeof *cases))

static ms_plan plan_of(const hardware_case *c)
{
    ms_plan plan = ms_plan_default(64);
    plan.model = c->model;
    plan.cluster = c->cluster;
    plan.stack = c->stack;
    memcpy(plan.size, c->size, sizeof plan.size);
    plan.ep = c->ep;
    plan.sequence_length = 4096;
    plan.global_batch = c->global_batch;
    plan.zero = c->zero;
    plan.schedule = c->schedule;
    plan.virtual_stages = c->virtual_stages;
    plan.sequence_parallel = c->size[MS_TP] > 1;
    plan.recompute = MS_RECOMPUTE_NONE;
    return plan;
}

/* Step times in seconds on one cluster, by command. */
typedef struct steps {
    double predict_s, search_s, simulate_s;
} steps;

static double simulate_s(ms_ctx *cx, const ms_planned *planned,
                         const ms_simulate_options *options)
{
    ms_simulation sim;
    ASSERT_OK(ms_simulate(cx, planned, options, &sim), cx);
    return sim.step_s;
}

static const ms_simulate_options events = {.engine = MS_ENGINE_EVENT,
                                           .detail = MS_DETAIL_NODE};

/* Options of a simulation with a slow part. */
static ms_simulate_options with_slow(ms_ctx *cx, const char *part)
{
    ms_simulate_options options = events;
    ASSERT_OK(ms_slowdown_read(cx, part, &options.slow[options.num_slow++]), cx);
    return options;
}

static ms_simulate_options with_slow_ranks(ms_ctx *cx, long num_ranks, double factor)
{
    ms_simulate_options options = events;
    for (long rank = 0; rank < num_ranks; rank++) {
        ms_simulate_options one =
            with_slow(cx, ms_arena_printf(cx->arena, "rank=%ld:%g", rank, factor));
        options.slow[options.num_slow++] = one.slow[0];
    }
    return options;
}

/* The search whose space is the plan alone, but that it splits the layers itself, evenly
 * by their time on the cluster. It prices what it finds as predict does. */
static double search_s(ms_ctx *cx, ms_workload *workload, const ms_plan *plan)
{
    ms_space space = ms_space_all(plan, workload->stack);
    space.fixed_order = true;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        space.low[MS_CHOOSE_PP + axis] = space.high[MS_CHOOSE_PP + axis] =
            plan->size[axis];
    const char *const limits[] = {
        ms_arena_printf(cx->arena, "ep=%ld", plan->ep),
        "etp=1",
        "mbs=1",
        ms_arena_printf(cx->arena, "zero=%ld", plan->zero),
        ms_arena_printf(cx->arena, "v=%ld", plan->virtual_stages),
        ms_arena_printf(cx->arena, "schedule=%s", ms_schedule_names[plan->schedule]),
        ms_arena_printf(cx->arena, "sp=%s", plan->sequence_parallel ? "on" : "off"),
        "async=off",
        "reshard=on",
        "recompute=none",
        "cp_method=all-gather"};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        ASSERT_OK(ms_space_limit(cx, &space, limits[i]), cx);
    workload->memory.limit_bytes = 1e15; /* the plan need not fit */
    ms_search_options options = {.num_best = 1, .num_threads = 1};
    ms_search_result result;
    ASSERT_OK(ms_search(cx, workload, &space, &options, &result), cx);
    ASSERT_INT(result.num_found, 1);
    ms_prediction prediction;
    ASSERT_OK(ms_predict(cx, workload, &result.found[0].plan, &prediction), cx);
    ASSERT_NEAR(result.found[0].step_s, prediction.step_s, ROUNDING);
    return result.found[0].step_s;
}

typedef struct bench {
    ms_ctx *cx;
    ms_workload_inputs inputs;
    ms_plan plan;
} bench;

/* The plan on a cluster by all three commands; only simulate knows of slow parts. */
static steps steps_on(const bench *b, const ms_cluster *cluster,
                      const ms_profile *profile, const ms_simulate_options *options)
{
    ms_workload *workload;
    ms_workload_inputs inputs = b->inputs;
    inputs.cluster = cluster;
    inputs.profile = profile;
    ASSERT_OK(ms_workload_make(b->cx, &inputs, &b->plan, &workload), b->cx);
    ms_prediction prediction;
    ms_planned planned;
    ASSERT_OK(ms_predict(b->cx, workload, &b->plan, &prediction), b->cx);
    ms_planned_open(b->cx, workload, &b->plan, &planned);
    steps out = {.predict_s = prediction.step_s,
                 .search_s = search_s(b->cx, workload, &b->plan),
                 .simulate_s = simulate_s(b->cx, &planned, options)};
    ms_workload_close(workload);
    return out;
}

static bench open_bench(const hardware_case *c)
{
    bench b = {.cx = test_cx(), .plan = plan_of(c)};
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(b.cx, &b.plan, &workload), b.cx);
    b.inputs = (ms_workload_inputs){workload->model, workload->cluster, workload->profile,
                                    workload->stack, workload->group_profiles};
    ms_planned planned;
    ms_planned_open(b.cx, workload, &b.plan, &planned);
    int num_stages = planned.pipeline.split->num_stages;
    long *layers = MS_NEW_ARRAY(b.cx->arena, num_stages, long);
    memcpy(layers, planned.pipeline.split->layers, (size_t)num_stages * sizeof *layers);
    b.plan.num_stage_layers = num_stages;
    b.plan.layers_per_stage = layers;
    ms_workload_close(workload);
    return b;
}

/* No command is faster on worse hardware, and all price the plan alike. */
static void check_worse(const steps *better, const steps *worse)
{
    assert_true(worse->predict_s >= better->predict_s * (1.0 - ROUNDING));
    assert_true(worse->search_s >= better->search_s * (1.0 - ROUNDING));
    assert_true(worse->simulate_s >= better->simulate_s * (1.0 - ROUNDING));
    ASSERT_NEAR(worse->simulate_s, worse->predict_s, MOST_FRAC);
}

static void oversubscribed_leaves_slow_all_commands(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_CASES; i++) {
        bench b = open_bench(&cases[i]);
        steps before = steps_on(&b, b.inputs.cluster, b.inputs.profile, &events);
        check_worse(&before, &before);
        for (double factor = 2.0; factor <= 4.0; factor *= 2.0) {
            ms_cluster cluster = *b.inputs.cluster;
            cluster.levels[1].oversubscription *= factor;
            steps after = steps_on(&b, &cluster, b.inputs.profile, &events);
            check_worse(&before, &after);
            before = after;
        }
    }
}

static void slow_links_slow_all_commands(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_CASES; i++) {
        bench b = open_bench(&cases[i]);
        steps as_is = steps_on(&b, b.inputs.cluster, b.inputs.profile, &events);
        for (int level = 0; level < b.inputs.cluster->num_levels; level++) {
            ms_cluster cluster = *b.inputs.cluster;
            cluster.levels[level].bandwidth_bytes_per_s *= 0.5;
            steps after = steps_on(&b, &cluster, b.inputs.profile, &events);
            check_worse(&as_is, &after);
            if (level != 1)
                continue;
            /* one slow NIC, which predict and search cannot say, costs no more than all */
            ms_simulate_options slow = with_slow(b.cx, "link=nic 0:2");
            steps one = steps_on(&b, b.inputs.cluster, b.inputs.profile, &slow);
            assert_true(one.simulate_s >= as_is.simulate_s * (1.0 - ROUNDING));
            assert_true(one.simulate_s <= after.simulate_s * (1.0 + ROUNDING));
        }
    }
}

/* A device that computes 1.3 times as long. */
static void slow_down(double factor, ms_cluster *cluster, ms_profile *profile)
{
    cluster->device.hbm_bytes_per_s /= factor;
    cluster->device.tdp_w /= factor;
    for (int type = 0; type < MS_NUM_DTYPES; type++)
        cluster->device.peak_flop_per_s[type] /= factor;
    for (int kernel = 0; kernel < MS_NUM_ATTENTION_KERNELS; kernel++) {
        profile->attention[kernel].forward_flop_per_s.value /= factor;
        profile->attention[kernel].backward_flop_per_s.value /= factor;
    }
}

/* A straggler: simulate slows the kernels of one rank, which costs no more than if all
 * ranks were slow, up to sharing of links: a rank out of step with others meets other
 * traffic. Predict and search, whose ranks are all alike, price a cluster of slower
 * devices instead. */
static void stragglers_slow_all_commands(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_CASES; i++) {
        bench b = open_bench(&cases[i]);
        ms_cluster cluster = *b.inputs.cluster;
        ms_profile profile = *b.inputs.profile;
        slow_down(1.3, &cluster, &profile);
        ms_simulate_options one_rank = with_slow(b.cx, "rank=5:1.3"),
                            ranks = with_slow_ranks(b.cx, b.plan.gpus, 1.3);
        steps as_is = steps_on(&b, b.inputs.cluster, b.inputs.profile, &events),
              devices = steps_on(&b, &cluster, &profile, &events),
              one = steps_on(&b, b.inputs.cluster, b.inputs.profile, &one_rank),
              all = steps_on(&b, b.inputs.cluster, b.inputs.profile, &ranks);
        check_worse(&as_is, &devices);
        assert_true(one.simulate_s >= as_is.simulate_s * (1.0 - ROUNDING));
        assert_true(one.simulate_s <= all.simulate_s * (1.0 + MOST_SHARING_FRAC));
        one_rank.unshared = ranks.unshared = true;
        one = steps_on(&b, b.inputs.cluster, b.inputs.profile, &one_rank);
        all = steps_on(&b, b.inputs.cluster, b.inputs.profile, &ranks);
        assert_true(one.simulate_s <= all.simulate_s * (1.0 + ROUNDING));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oversubscribed_leaves_slow_all_commands),
        cmocka_unit_test(slow_links_slow_all_commands),
        cmocka_unit_test(stragglers_slow_all_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
