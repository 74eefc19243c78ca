/* Predictions by the event engine, compared with predictions by replay of the
 * schedule. */
#include "sim/simulate/predict_events.h"
#include "sim/simulate/simulation.h"
#include "sim/step/prediction.h"
#include "tests/test.h"

static ms_plan small_plan(void)
{
    ms_plan plan = ms_plan_default(16);
    plan.model = "llama-3.2-1b";
    plan.size[MS_PP] = plan.size[MS_DP_SHARD] = 4;
    plan.zero = 1;
    plan.sequence_length = 4096;
    plan.global_batch = 32;
    ms_plan_fill_defaults(&plan);
    return plan;
}

static void times_come_from_the_engine_that_is_named(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = small_plan();
    ms_workload *workload;
    ms_prediction replayed, by_events;
    ms_planned planned;
    ms_simulation simulation;
    ms_simulate_options options = {.engine = MS_ENGINE_EVENT, .detail = MS_DETAIL_NODE};
    ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
    ASSERT_OK(ms_predict(cx, workload, &plan, &replayed), cx);
    ASSERT_OK(ms_predict_by_events(cx, workload, &plan, &by_events), cx);
    ms_planned_open(cx, workload, &plan, &planned);
    ASSERT_OK(ms_simulate(cx, &planned, &options, &simulation), cx);
    ASSERT_INT(replayed.engine, MS_ENGINE_REPLAY);
    ASSERT_INT(by_events.engine, MS_ENGINE_EVENT);
    ASSERT_NEAR(replayed.replay_step_s, replayed.step_s, 0.0);
    ASSERT_NEAR(by_events.replay_step_s, replayed.step_s, 0.0);
    ASSERT_NEAR(by_events.step_s, simulation.step_s, 0.0);
    ASSERT_NEAR(by_events.tokens_per_s * by_events.step_s, 32.0 * 4096.0, 1e-12);
    ASSERT_NEAR(by_events.mfu_frac * by_events.step_s,
                replayed.mfu_frac * replayed.step_s, 1e-12);
    ASSERT_NEAR(by_events.compute_s + by_events.exposed_comm_s + by_events.bubble_s +
                    by_events.optimizer_s + by_events.host_s,
                by_events.step_s, 1e-9);
    ASSERT_NEAR(by_events.peak_bytes, replayed.peak_bytes, 0.0);
    ms_workload_close(workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_come_from_the_engine_that_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
