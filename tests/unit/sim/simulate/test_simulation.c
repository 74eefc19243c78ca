/* Simulations of training steps of small plans, and options that are refused. */
#include "sim/simulate/simulation.h"
#include "sim/step/prediction.h"
#include "tests/test.h"

/* A plan of llama-3.2-1b on pp 2 x dp 2 x tp 2 with 4 micro-batches of one sequence. */
typedef struct bench {
    ms_ctx *cx;
    ms_plan plan;
    ms_workload *workload;
    ms_planned planned;
} bench;

static bench *open_bench(void)
{
    ms_ctx *cx = test_cx();
    bench *b = MS_NEW(cx->arena, bench);
    b->cx = cx;
    b->plan = ms_plan_default(8);
    b->plan.model = "llama-3.2-1b";
    b->plan.size[MS_PP] = b->plan.size[MS_TP] = b->plan.size[MS_DP_SHARD] = 2;
    b->plan.zero = 1;
    b->plan.sequence_length = 4096;
    b->plan.global_batch = 8;
    ms_plan_fill_defaults(&b->plan);
    ASSERT_OK(ms_workload_open(cx, &b->plan, &b->workload), cx);
    ASSERT_OK(ms_plan_check(cx, &b->plan, b->workload->model, MS_NOWHERE), cx);
    ms_planned_open(cx, b->workload, &b->plan, &b->planned);
    return b;
}

static ms_simulation simulate(bench *b, ms_simulate_options options)
{
    ms_simulation sim;
    ASSERT_OK(ms_simulate(b->cx, &b->planned, &options, &sim), b->cx);
    return sim;
}

static void slow_parts_are_read(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_slowdown part;
    ASSERT_OK(ms_slowdown_read(cx, "rank=5:1.3", &part), cx);
    assert_false(part.is_link);
    ASSERT_INT(part.rank, 5);
    ASSERT_NEAR(part.factor, 1.3, 1e-15);
    ASSERT_OK(ms_slowdown_read(cx, "link=nic 12:2", &part), cx);
    assert_true(part.is_link);
    ASSERT_TEXT(part.link, "nic 12");
    ASSERT_NEAR(part.factor, 2.0, 0.0);
}

static void bad_slow_parts_are_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "neither a rank nor a link"},
        {"node=3:2", "neither a rank nor a link"},
        {"rank=3", "factor is missing"},
        {"rank=3:", "no positive number"},
        {"rank=3:0", "no positive number"},
        {"rank=3:-2", "no positive number"},
        {"rank=3:nan", "no positive number"},
        {"rank=-1:2", "no whole number"},
        {"rank=:2", "no whole number"},
        {"rank=1e3:2", "no whole number"},
        {"link=:2", "has no name"},
        {"link=nic:x", "no positive number"},
        {"rank=99999999999999999999:2", "no whole number"},
        {"rank=1:1e9", "between"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ms_ctx *cx = test_cx();
        ms_slowdown part;
        ASSERT_INT(ms_slowdown_read(cx, bad[i][0], &part), MS_EINPUT);
        if (strstr(test_messages(cx), bad[i][1]) == NULL)
            fail_msg("\"%s\": %s", bad[i][0], test_messages(cx));
    }
}

static void a_rank_that_is_not_there_is_refused(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_simulate_options options = {.num_slow = 1, .slow = {{.rank = 8, .factor = 2}}};
    ms_simulation sim;
    ASSERT_INT(ms_simulate(b->cx, &b->planned, &options, &sim), MS_EINPUT);
    assert_non_null(strstr(test_messages(b->cx), "ranks 0 to 7"));
    ms_workload_close(b->workload);
}

static void the_step_is_the_prediction(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_prediction prediction;
    ASSERT_OK(ms_predict(b->cx, b->workload, &b->plan, &prediction), b->cx);
    for (int engine = MS_ENGINE_REPLAY; engine <= MS_ENGINE_EVENT; engine++) {
        ms_simulation sim =
            simulate(b, (ms_simulate_options){.engine = (ms_engine)engine});
        ASSERT_NEAR(sim.step_s, prediction.step_s, 0.0);
        ASSERT_NEAR(sim.predicted_step_s, prediction.step_s, 0.0);
        ASSERT_INT(sim.num_actors, 2);
        ASSERT_INT(sim.actors[0].multiplicity, 4);
        for (int a = 0; a < 2; a++)
            ASSERT_NEAR(sim.actors[a].peak_bytes, prediction.stages[a].peak_bytes, 1e-9);
    }
    ms_workload_close(b->workload);
}

/* The slow rank 5 is on the second stage: ranks 4 (tp), 6 and 7 (shards) wait for it,
 * and the first stage for its gradients. */
static void a_slow_rank_slows_all_that_wait_for_it(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_simulation fast = simulate(b, (ms_simulate_options){0});
    ms_simulate_options options = {.num_slow = 1, .slow = {{.rank = 5, .factor = 2}}};
    ms_simulation slow = simulate(b, options);
    assert_true(slow.num_actors > fast.num_actors);
    const ms_actor *rank5 = &slow.actors[slow.fold.class_of[5]],
                   *rank4 = &slow.actors[slow.fold.class_of[4]];
    ASSERT_NEAR(rank5->slow_factor, 2.0, 0.0);
    ASSERT_NEAR(rank5->compute_s, 2.0 * rank4->compute_s, 1e-12);
    assert_true(slow.step_s > fast.step_s + 0.9 * rank4->compute_s);
    assert_true(rank4->exposed_comm_s > 0.9 * rank4->compute_s);
    ms_workload_close(b->workload);
}

/* A step simulated node by node takes as long as one with a task per action, where
 * gathers and reductions are hidden: Llama 70B on pp 4 x dp 2 x tp 8. */
static void nodes_add_up_to_actions(void **state)
{
    (void)state;
    bench b = {.cx = test_cx(), .plan = ms_plan_default(64)};
    b.plan.model = "llama-3.1-70b";
    b.plan.size[MS_PP] = 4;
    b.plan.size[MS_TP] = 8;
    b.plan.size[MS_DP_SHARD] = 2;
    b.plan.global_batch = 32;
    b.plan.zero = 1;
    b.plan.sequence_parallel = true;
    ms_plan_fill_defaults(&b.plan);
    ASSERT_OK(ms_workload_open(b.cx, &b.plan, &b.workload), b.cx);
    ms_planned_open(b.cx, b.workload, &b.plan, &b.planned);
    ms_simulation nodes = simulate(&b, (ms_simulate_options){.detail = MS_DETAIL_NODE});
    ms_simulation actions = simulate(&b, (ms_simulate_options){0});
    ASSERT_NEAR(nodes.step_s, actions.step_s, 0.01);
    for (int a = 0; a < 4; a++) {
        ASSERT_NEAR(nodes.actors[a].compute_s, actions.actors[a].compute_s, 1e-9);
        ASSERT_NEAR(nodes.actors[a].peak_bytes, actions.actors[a].peak_bytes, 1e-9);
    }
    ms_workload_close(b.workload);
}

static void a_slow_link_needs_sharing(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_simulate_options options = {
        .num_slow = 1, .slow = {{.is_link = true, .link = "nvlink out 3", .factor = 20}}};
    ms_simulation slow;
    ASSERT_INT(ms_simulate(b->cx, &b->planned, &options, &slow), MS_EINPUT);
    options.engine = MS_ENGINE_EVENT;
    options.detail = MS_DETAIL_NODE;
    slow = simulate(b, options);
    options.num_slow = 0;
    ms_simulation fast = simulate(b, options);
    assert_true(slow.step_s > 1.05 * fast.step_s);
    assert_true(slow.num_actors > fast.num_actors);
    options.num_slow = 1;
    options.slow[0].link = "string 7";
    ASSERT_INT(ms_simulate(b->cx, &b->planned, &options, &slow), MS_EINPUT);
    ms_workload_close(b->workload);
}

static void jitter_is_drawn_from_the_seed(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_simulation calm = simulate(b, (ms_simulate_options){0});
    ms_simulate_options options = {.jitter_frac = 0.05, .seed = 1};
    ms_simulation one = simulate(b, options), again = simulate(b, options);
    options.seed = 2;
    ms_simulation other = simulate(b, options);
    ASSERT_INT(one.num_actors, 8);
    ASSERT_NEAR(one.step_s, again.step_s, 0.0);
    assert_true(one.step_s != other.step_s);
    assert_true(one.step_s > calm.step_s); /* ranks wait for the slowest of them */
    ASSERT_NEAR(one.step_s, calm.step_s, 0.25);
    ms_workload_close(b->workload);
}

/* Where ranks keep whole weights, the first step gathers no weights. Its time equals, to
 * the last bit, a replay in which gathers neither delay nor slow the first forwards. */
static void a_first_step_gathers_no_whole_weights(void **state)
{
    (void)state;
    bench *b = open_bench();
    const ms_planned *p = &b->planned;
    ms_stage_times times[2];
    ms_step_durations(&p->pipeline, p->sharding, b->cx->arena, times);
    for (int s = 0; s < 2; s++) {
        assert_true(times[s].release_s > 0.0);
        times[s].release_s = 0.0;
        times[s].first_forward_s = times[s].forward_s;
    }
    ms_step_time want =
        ms_step_time_of(&p->pipeline, p->sharding, p->schedule, times, b->cx->arena);
    ms_simulation steady = simulate(b, (ms_simulate_options){0});
    ms_simulation first = simulate(b, (ms_simulate_options){.first_step = true});
    assert_true(first.step_s == want.step_s);
    assert_true(first.step_s < steady.step_s);
    ms_simulation nodes[2];
    for (int i = 0; i < 2; i++)
        nodes[i] = simulate(
            b, (ms_simulate_options){.detail = MS_DETAIL_NODE, .first_step = i == 1});
    assert_true(nodes[1].step_s < nodes[0].step_s);
    b->planned.sharding = MS_ZERO_3; /* ZeRO-3 gathers shards in every step */
    assert_true(simulate(b, (ms_simulate_options){.first_step = true}).step_s ==
                simulate(b, (ms_simulate_options){0}).step_s);
    ms_workload_close(b->workload);
}

/* Optimizer moments are allocated by the first update, at the end of the first step, when
 * its activations are already freed. */
static void moments_come_with_the_first_update(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_simulation steady = simulate(b, (ms_simulate_options){0});
    ms_simulation first = simulate(b, (ms_simulate_options){.first_step = true});
    const ms_stack *stack = b->workload->stack;
    double moments_frac = stack->moment_bytes.value /
                          (stack->moment_bytes.value + stack->master_bytes.value);
    for (int a = 0; a < first.num_actors; a++) {
        const ms_actor *actor = &first.actors[a], *later = &steady.actors[a];
        int last = actor->num_samples - 1;
        ASSERT_INT(last, later->num_samples);
        double whole = later->samples[0].bytes[MS_MEMORY_OPTIMIZER];
        for (int i = 0; i < last; i++)
            ASSERT_NEAR(actor->samples[i].bytes[MS_MEMORY_OPTIMIZER] / whole,
                        1.0 - moments_frac, 1e-12);
        ASSERT_NEAR(actor->samples[last].bytes[MS_MEMORY_OPTIMIZER] / whole, 1.0, 1e-12);
        ASSERT_NEAR(actor->samples[last].bytes[MS_MEMORY_ACTIVATIONS], 0.0, 0.0);
        assert_true(actor->samples[last].time_s > actor->samples[last - 1].time_s);
        assert_true(actor->peak_bytes < later->peak_bytes);
    }
    ms_workload_close(b->workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_parts_are_read),
        cmocka_unit_test(bad_slow_parts_are_refused),
        cmocka_unit_test(a_rank_that_is_not_there_is_refused),
        cmocka_unit_test(the_step_is_the_prediction),
        cmocka_unit_test(a_slow_rank_slows_all_that_wait_for_it),
        cmocka_unit_test(nodes_add_up_to_actions),
        cmocka_unit_test(a_slow_link_needs_sharing),
        cmocka_unit_test(jitter_is_drawn_from_the_seed),
        cmocka_unit_test(a_first_step_gathers_no_whole_weights),
        cmocka_unit_test(moments_come_with_the_first_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
