/* Training steps on the loop backend (ranks as threads): every kind of parallelism gives
 * the losses, gradients and weights of one rank. */
#include "tests/support/run_plan.h"
#include "tests/test.h"

typedef struct change {
    const char *name;
    long pp, dp_replicate, dp_shard, cp, tp, ep, etp;
    long zero, microbatch;
} change;

static ms_plan changed(const change *c)
{
    ms_plan plan = ms_run_base_plan();
    plan.size[MS_PP] = c->pp;
    plan.size[MS_DP_REPLICATE] = c->dp_replicate;
    plan.size[MS_DP_SHARD] = c->dp_shard;
    plan.size[MS_CP] = c->cp;
    plan.size[MS_TP] = c->tp;
    plan.ep = c->ep;
    plan.etp = c->etp;
    plan.zero = c->zero;
    plan.microbatch = c->microbatch;
    plan.gpus = c->pp * c->dp_replicate * c->dp_shard * c->cp * c->tp;
    return plan;
}

static ms_outcome run(ms_ctx *cx, const ms_model *model, const ms_plan *plan)
{
    ms_outcome out;
    ms_runner_options options = ms_run_options(model, plan, MS_REAL_FP64);
    ms_plan typed = *plan;
    typed.compute = MS_FP64;
    options.num_steps = 2;
    ASSERT_INT(ms_plan_check(cx, plan, model, MS_NOWHERE), MS_OK);
    ASSERT_OK(ms_run_plan(cx, model, &typed, "generic", &ms_backend_loop, &options, &out),
              cx);
    return out;
}

static void every_axis_equals_one_rank(void **state)
{
    (void)state;
    static const change changes[] = {
        {"micro-batches", 1, 1, 1, 1, 1, 1, 1, 0, 2},
        {"dp", 1, 2, 1, 1, 1, 1, 1, 0, 2},
        {"tp", 1, 1, 1, 1, 2, 1, 1, 0, 4},
        {"cp", 1, 1, 1, 2, 1, 1, 1, 0, 4},
        {"pp", 2, 1, 1, 1, 1, 1, 1, 0, 1},
        {"zero 1", 1, 1, 2, 1, 1, 1, 1, 1, 2},
        {"zero 2", 1, 1, 2, 1, 1, 1, 1, 2, 2},
        {"zero 3", 1, 1, 2, 1, 1, 1, 1, 3, 2},
        {"hsdp", 1, 2, 2, 1, 1, 1, 1, 3, 1},
    };
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_plan base = ms_run_base_plan();
    ms_outcome want = run(cx, model, &base);
    int wrong = 0;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        ms_plan plan = changed(&changes[i]);
        ms_outcome got = run(cx, model, &plan);
        const char *worst = "";
        double gradients = ms_run_difference(&got.gradients, &want.gradients, &worst);
        printf("%s: loss %.3e weights %.1e gradients %.1e (%s) updated %.1e\n",
               changes[i].name, got.losses[1] / want.losses[1] - 1,
               ms_run_difference(&got.weights, &want.weights, NULL), gradients, worst,
               ms_run_difference(&got.updated, &want.updated, NULL));
        wrong += !(ms_run_difference(&got.weights, &want.weights, NULL) == 0.0 &&
                   gradients < 1e-12 &&
                   ms_run_difference(&got.updated, &want.updated, NULL) < 1e-12);
    }
    ASSERT_INT(wrong, 0);
}

/* All parallelisms in one plan: pp 2, dp_replicate 2, dp_shard 4, cp 2, tp 2, ep 8. */
static void all_parallelisms_at_once_on_64_ranks(void **state)
{
    (void)state;
    static const change all = {"all", 2, 2, 4, 2, 2, 8, 1, 3, 1};
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_mixtral);
    ms_plan plan = changed(&all), base = ms_run_base_plan();
    plan.global_batch = base.global_batch = base.microbatch = 32;
    plan.cp_method = MS_CP_RING;
    plan.recompute = MS_RECOMPUTE_SELECTIVE;
    ms_plan_set_schedule(&plan, MS_1F1B);
    ms_outcome want = run(cx, model, &base), got = run(cx, model, &plan);
    ASSERT_INT(plan.gpus, 64);
    ASSERT_NEAR(got.losses[1], want.losses[1], 1e-12);
    assert_true(ms_run_difference(&got.gradients, &want.gradients, NULL) < 1e-12);
    assert_true(ms_run_difference(&got.updated, &want.updated, NULL) < 1e-12);
}

/* 50 steps of pp 2 x dp_shard 2 x tp 2 give the losses of one rank. */
static void training_goes_as_on_one_rank(void **state)
{
    (void)state;
    static const change mesh = {"mesh", 2, 1, 2, 1, 2, 1, 1, 3, 2};
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_plan plans[2] = {ms_run_base_plan(), changed(&mesh)};
    ms_outcome out[2];
    for (int i = 0; i < 2; i++) {
        ms_runner_options options = ms_run_options(model, &plans[i], MS_REAL_FP32);
        options.num_steps = 50;
        options.optimizer.learning_rate = 1e-2;
        ASSERT_OK(ms_run_plan(cx, model, &plans[i], "meshsim", &ms_backend_loop, &options,
                              &out[i]),
                  cx);
    }
    assert_true(out[0].losses[49] < 0.7 * out[0].losses[0]);
    for (int step = 0; step < 50; step++)
        ASSERT_NEAR(out[1].losses[step], out[0].losses[step], 1e-4);
    printf("loss %.4f, after 50 steps %.4f and %.4f\n", out[0].losses[0],
           out[0].losses[49], out[1].losses[49]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_axis_equals_one_rank),
        cmocka_unit_test(all_parallelisms_at_once_on_64_ranks),
        cmocka_unit_test(training_goes_as_on_one_rank)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
