/* Inputs that tensor parallelism gathers stay in memory until backward when the host
 * runs ahead of the GPU (which computes a layer for longer than the host launches it),
 * inside a node and with more micro-batches than stages. */
#include "sim/step/bill_key.h"

#include "tests/test.h"

static ms_plan plan_of(const char *stack, long pp, long tp, long dp, long microbatch)
{
    ms_plan plan = ms_plan_default(pp * tp * dp);
    plan.model = "llama-3.1-8b";
    plan.cluster = "hgx-h100";
    plan.stack = stack;
    plan.size[MS_PP] = pp;
    plan.size[MS_TP] = tp;
    plan.size[MS_DP_SHARD] = dp;
    plan.sequence_length = 4096;
    plan.microbatch = microbatch;
    plan.global_batch = 8 * pp * dp * microbatch;
    plan.sequence_parallel = true;
    return plan;
}

static bool holds(const ms_plan *plan)
{
    ms_ctx *cx = test_cx();
    ms_workload *workload = NULL;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    bool held = ms_plan_bill_key(workload, plan).holds_gathers;
    ms_workload_close(workload);
    return held;
}

/* For each sequence, the GPUs compute a layer of the 8B model (5.4 TFLOP forward and
 * backward) in 1 ms with tp 8. The host takes 4 to 24 ms to launch a layer, so it is
 * ahead of the GPUs only with large micro-batches; only then are gathered inputs held. */
static void a_host_that_is_ahead_holds_them(void **state)
{
    (void)state;
    ms_plan slow = plan_of("nanotron", 2, 8, 1, 1),
            fast = plan_of("nanotron", 2, 8, 1, 64);
    assert_false(holds(&slow));
    assert_true(holds(&fast));
    fast.global_batch = 2 * fast.microbatch; /* two micro-batches for two stages */
    assert_false(holds(&fast));
    ms_plan wide = plan_of("nanotron", 2, 16, 1, 64); /* tp 16 spans two nodes */
    assert_false(holds(&wide));
}

static void without_a_pipeline_they_are_held(void **state)
{
    (void)state;
    ms_plan alone = plan_of("nanotron", 1, 8, 1, 1),
            other = plan_of("megatron", 2, 8, 1, 64);
    assert_true(holds(&alone));
    assert_false(holds(&other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_that_is_ahead_holds_them),
        cmocka_unit_test(without_a_pipeline_they_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
