/* Predictions of plans with adapters (LoRA) on frozen weights: model FLOP, parameters,
 * states, and traffic. */
#include "sim/step/prediction.h"
#include "tests/test.h"

/* Predicts a plan of 70b on 8 GPUs with tp 4 and adapters on attention. */
static ms_plan plan_of(long rank, long zero)
{
    ms_plan plan = ms_plan_default(8);
    plan.model = "llama-2-70b";
    plan.size[MS_TP] = 4;
    plan.global_batch = 8;
    plan.microbatch = 1;
    plan.zero = zero;
    plan.lora_rank = rank;
    plan.lora_targets = "attention";
    ms_plan_fill_defaults(&plan);
    return plan;
}

typedef struct opened {
    ms_workload *workload;
    ms_prediction prediction;
    ms_planned planned;
} opened;

static void open_plan(ms_ctx *cx, const ms_plan *plan, opened *out)
{
    ASSERT_OK(ms_workload_open(cx, plan, &out->workload), cx);
    ASSERT_OK(ms_predict(cx, out->workload, plan, &out->prediction), cx);
    ms_planned_open(cx, out->workload, plan, &out->planned);
}

/* 4 FLOP for each of the 68,714,504,192 parameters that a token meets (68,976,648,192
 * less an embedding of 32,000 x 8,192), 6 for each of the adapters' 44,564,480. */
static void model_flop_are_four_a_frozen_parameter(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of(16, 1), all = plan_of(0, 1);
    opened adapters, full;
    open_plan(cx, &plan, &adapters);
    open_plan(cx, &all, &full);
    double got = ms_workload_flop_per_token(adapters.workload).full_flop;
    double whole = ms_workload_flop_per_token(full.workload).full_flop;
    ASSERT_NEAR(whole - got, 2.0 * 68714504192.0 - 6.0 * 44564480.0, 1.0);
    assert_true(adapters.prediction.hfu_frac >= adapters.prediction.mfu_causal_frac);
    ms_workload_close(adapters.workload);
    ms_workload_close(full.workload);
}

static void ranks_hold_all_parameters(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of(16, 1);
    opened o;
    open_plan(cx, &plan, &o);
    ms_rank_load load = ms_planned_load(cx, &o.planned, 0);
    /* norms are on every tp rank */
    double norms = 161.0 * 8192.0;
    ASSERT_NEAR(4.0 * load.dense_params, 44564480.0, 0.0);
    ASSERT_NEAR(4.0 * load.frozen.dense, 2.0 * (68976648192.0 + 3.0 * norms), 0.0);
    const double *parts = o.prediction.memory;
    ASSERT_NEAR(parts[MS_MEMORY_PARAMS], load.frozen.dense + 2.0 * load.dense_params,
                1.0);
    ASSERT_NEAR(parts[MS_MEMORY_GRADS], 4.0 * load.dense_params, 1.0);
    ASSERT_NEAR(parts[MS_MEMORY_OPTIMIZER], 12.0 * load.dense_params / 2.0, 1.0);
    ms_workload_close(o.workload);
}

/* ZeRO-1 gathers and reduces adapters alone; ZeRO-3 gathers frozen weights twice. */
static void only_zero_3_moves_frozen_weights(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    double bytes[4] = {0};
    for (long zero = 1; zero <= 3; zero += 2) {
        ms_plan plan = plan_of(16, zero);
        opened o;
        open_plan(cx, &plan, &o);
        for (int i = 0; i < o.prediction.num_axes; i++)
            if (o.prediction.axes[i].group == MS_TRAFFIC_FSDP)
                bytes[zero] = o.prediction.axes[i].bytes;
        ms_workload_close(o.workload);
    }
    double frozen = (68976648192.0 + 3.0 * 161.0 * 8192.0) / 4.0;
    /* each of two ranks sends half of what a gather moves; 4 micro-batches */
    double more = 4.0 * 2.0 * 0.5 * 2.0 * frozen;
    assert_true(bytes[1] < 1e9);
    ASSERT_NEAR(bytes[3] / more, 1.0, 0.01);
}

/* A base in NF4 needs a quarter of the bytes of the layers' matrices, and more time than
 * one in bf16. */
static void nf4_trades_time_for_memory(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan wide = plan_of(16, 1), narrow = wide;
    narrow.lora_base = MS_BASE_NF4;
    opened a, b;
    open_plan(cx, &wide, &a);
    open_plan(cx, &narrow, &b);
    /* all parameters but embedding, head and norms */
    double matrices = 68976648192.0 - 2.0 * 32000.0 * 8192.0 - 161.0 * 8192.0;
    double saved =
        a.prediction.memory[MS_MEMORY_PARAMS] - b.prediction.memory[MS_MEMORY_PARAMS];
    ASSERT_NEAR(4.0 * saved / matrices, 2.0 - 4.127 / 8.0, 1e-4);
    assert_true(b.prediction.step_s > a.prediction.step_s);
    ms_workload_close(a.workload);
    ms_workload_close(b.workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_flop_are_four_a_frozen_parameter),
        cmocka_unit_test(ranks_hold_all_parameters),
        cmocka_unit_test(only_zero_3_moves_frozen_weights),
        cmocka_unit_test(nf4_trades_time_for_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
