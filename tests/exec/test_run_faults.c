/* Runs in which something fails: every call of a rank in turn, a loss that is no number. All ranks end, and one message says what happened. */
#include "tests/support/faulty_backend.h"
#include "tests/support/run_plan.h"
#include "tests/test.h"

/* Four ranks: pp 2 x dp_shard 2 under ZeRO-3. */
static ms_plan small_plan(void)
{
    ms_plan plan = ms_run_base_plan();
    plan.size[MS_PP] = plan.size[MS_DP_SHARD] = 2;
    plan.gpus = 4;
    plan.zero = 3;
    plan.microbatch = 2;
    return plan;
}

static ms_status run_faulty(ms_ctx *cx, ms_faulty *faulty, const ms_plan *plan)
{
    const ms_model *model = ms_run_model(cx->arena, ms_small_mixtral);
    ms_runner_options options = ms_run_options(model, plan, MS_REAL_FP32);
    ms_outcome out;
    *faulty = (ms_faulty){
        .inner = &ms_backend_loop, .rank = faulty->rank, .fail_at = faulty->fail_at};
    return ms_run_plan_faulty(cx, model, plan, faulty, &options, &out);
}

static void every_call_may_fail(void **state)
{
    (void)state;
    ms_plan plan = small_plan();
    ms_faulty faulty = {.rank = 2};
    ASSERT_OK(run_faulty(test_cx(), &faulty, &plan), test_cx());
    long num_calls = faulty.num_calls;
    assert_true(num_calls > 500);
    for (long k = 1; k <= num_calls; k += k < 64 ? 1 : 7) {
        ms_ctx *cx = test_cx();
        faulty.fail_at = k;
        ASSERT_INT(run_faulty(cx, &faulty, &plan), MS_EIO);
        assert_true(faulty.failed);
        ASSERT_INT(cx->num_errors, 1);
        assert_non_null(strstr(cx->first->message, "rank 2"));
    }
}

static void a_loss_that_is_no_number_is_told(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_run_model(cx->arena, ms_small_llama);
    ms_plan plan = small_plan();
    ms_runner_options options = ms_run_options(model, &plan, MS_REAL_FP32);
    ms_outcome out;
    options.num_steps = 3;
    options.optimizer.learning_rate = 1e30;
    ASSERT_INT(ms_run_plan(cx, model, &plan, "generic", &ms_backend_loop, &options, &out),
               MS_EIO);
    assert_non_null(strstr(cx->first->message, "not finite"));
    assert_non_null(strstr(cx->first->message, "rank "));
}

static void an_interrupt_keeps_the_steps_that_are_done(void **state)
{
    (void)state;
    static volatile int interrupted = 1;
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_run_model(cx->arena, ms_small_llama);
    ms_plan plan = small_plan();
    ms_runner_options options = ms_run_options(model, &plan, MS_REAL_FP32);
    ms_outcome out;
    options.num_steps = 5;
    options.interrupted = &interrupted;
    ASSERT_INT(ms_run_plan(cx, model, &plan, "generic", &ms_backend_loop, &options, &out),
               MS_EINTERRUPTED);
    ASSERT_INT(out.steps_done, 1);
    assert_true(out.losses[0] > 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(a_loss_that_is_no_number_is_told),
        cmocka_unit_test(an_interrupt_keeps_the_steps_that_are_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
