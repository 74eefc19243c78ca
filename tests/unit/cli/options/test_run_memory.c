/* Memory that a run on CPU ranks needs: their peaks, and what their plan keeps in host
 * memory, which is the same memory. */
#include "cli/options/run_memory.h"
#include "tests/support/run_plan.h"
#include "tests/test.h"

#include <string.h>

static ms_run_memory memory_of(ms_ctx *cx, const ms_plan *plan, long num_whole,
                               ms_prediction *out)
{
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_run_opened opened;
    ASSERT_OK(ms_run_open(cx, model, plan, "meshsim", &opened), cx);
    ASSERT_OK(ms_predict(cx, opened.workload, plan, out), cx);
    ms_run_place place = {.world = opened.world,
                          .num_ranks = opened.world->num_ranks,
                          .num_whole = num_whole};
    ms_run_memory memory = ms_run_memory_of(cx, opened.workload, out, &place);
    ms_run_close(&opened);
    return memory;
}

static void host_memory_of_an_offload_counts(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_run_base_plan();
    ms_prediction prediction;
    plan.gpus = plan.size[MS_DP_SHARD] = 2;
    plan.microbatch = 1;
    plan.offload_activations_frac = 1.0;
    plan.offload_optimizer = MS_HOST_UPDATE;
    ms_run_memory memory = memory_of(cx, &plan, 0, &prediction);
    assert_null(memory.reason);
    assert_true(prediction.stages[0].host_bytes > 0.0);
    ASSERT_NEAR(memory.needed_bytes,
                2.0 * (prediction.stages[0].peak_bytes + prediction.stages[0].host_bytes),
                1e-12);
}

/* More copies of all weights than any machine holds; no change of the plan makes room. */
static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_run_base_plan();
    ms_prediction prediction;
    plan.offload_activations_frac = 1.0;
    ms_run_memory memory = memory_of(cx, &plan, 1L << 40, &prediction);
    assert_non_null(memory.reason);
    assert_null(memory.change);
    ASSERT_INT(ms_run_memory_fail(cx, &memory), MS_ENOFIT);
    assert_non_null(strstr(test_messages(cx), "the rank of this plan needs"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_memory_of_an_offload_counts),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
