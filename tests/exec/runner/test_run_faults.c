/* Tests of training runs that fail (a backend call of one rank, a loss that is no number)
 * or are interrupted: all ranks end, and one message gives the reason. */
#include "tests/support/faulty_backend.h"
#include "tests/support/run_plan.h"
#include "tests/test.h"

#include <math.h>

/* Makes a plan of four ranks, pp 2 x dp_shard 2 with ZeRO-3, and little work. */
static ms_plan small_plan(void)
{
    ms_plan plan = ms_run_base_plan();
    plan.size[MS_PP] = plan.size[MS_DP_SHARD] = 2;
    plan.gpus = 4;
    plan.zero = 3;
    plan.global_batch = 4;
    plan.microbatch = 1;
    return plan;
}

static const ms_model *small_model(ms_arena *arena)
{
    ms_model *model = MS_NEW(arena, ms_model);
    *model = *ms_pubrun_model(arena, ms_small_mixtral);
    model->num_layers = 2;
    return model;
}

static ms_runner_options options_of(const ms_model *model, const ms_plan *plan)
{
    ms_runner_options options = ms_run_options(model, plan, MS_REAL_FP32);
    /* only gradients are wanted: weights are gathered in the same way */
    options.wants_weights = options.wants_updated = false;
    return options;
}

static ms_status run_faulty(ms_ctx *cx, ms_faulty *faulty, const ms_plan *plan)
{
    const ms_model *model = small_model(cx->arena);
    ms_runner_options options = options_of(model, plan);
    ms_outcome out;
    *faulty = (ms_faulty){
        .inner = &ms_backend_loop, .rank = faulty->rank, .fail_at = faulty->fail_at};
    return ms_run_plan_faulty(cx, model, plan, faulty, &options, &out);
}

/* Lets each `stride`-th call of a plan's run fail in turn. */
static void fail_calls_of(const ms_plan *plan, long stride)
{
    ms_faulty faulty = {.rank = 2};
    ASSERT_OK(run_faulty(test_cx(), &faulty, plan), test_cx());
    long num_calls = faulty.num_calls;
    assert_true(num_calls > 300);
    for (long k = 1; k <= num_calls; k += stride) {
        ms_ctx *cx = test_cx();
        faulty.fail_at = k;
        ASSERT_INT(run_faulty(cx, &faulty, plan), MS_EIO);
        assert_true(faulty.failed);
        ASSERT_INT(cx->num_errors, 1);
        assert_non_null(strstr(cx->first->message, "rank 2"));
    }
}

static void every_call_may_fail(void **state)
{
    (void)state;
    const ms_plan plan = small_plan();
    fail_calls_of(&plan, 1);
}

/* Calls of copies to host memory and back, and of updates of states there. */
static void calls_of_an_offload_may_fail(void **state)
{
    (void)state;
    ms_plan plan = small_plan();
    plan.offload_activations_frac = 0.5;
    plan.offload_optimizer = MS_HOST_STATES;
    fail_calls_of(&plan, 3);
    plan.offload_optimizer = MS_HOST_UPDATE;
    fail_calls_of(&plan, 3);
}

/* A failed allocation is reported with both a hint and the pipeline action that needed
 * memory. */
static void advice_and_action_are_told(void **state)
{
    (void)state;
    ms_plan plan = small_plan();
    ms_faulty faulty = {.rank = 2};
    long num_both = 0;
    ASSERT_OK(run_faulty(test_cx(), &faulty, &plan), test_cx());
    for (long k = faulty.num_calls / 2; num_both == 0; k++) {
        ms_ctx *cx = test_cx();
        faulty.fail_at = k;
        ASSERT_INT(run_faulty(cx, &faulty, &plan), MS_EIO);
        const char *hint = cx->first->hint;
        if (strstr(cx->first->message, "no memory is left") == NULL || hint == NULL)
            continue;
        assert_non_null(strstr(hint, "smaller micro-batch"));
        num_both += strstr(hint, "in action") != NULL;
    }
}

/* An interrupt at the k-th backend call of a rank ends the second of three steps early:
 * all ranks keep only the first step. */
static void an_interrupt_breaks_a_step_off(void **state)
{
    (void)state;
    ms_plan plan = small_plan();
    ms_faulty one = {.rank = 2};
    ASSERT_OK(run_faulty(test_cx(), &one, &plan), test_cx());
    long num_broken_off = 0, num_none = 0;
    for (long k = 1; k < 2 * one.num_calls; k += 17) {
        ms_ctx *cx = test_cx();
        const ms_model *model = small_model(cx->arena);
        ms_runner_options options = options_of(model, &plan);
        volatile int interrupted = 0;
        ms_outcome out;
        ms_faulty faulty = {.inner = &ms_backend_loop,
                            .rank = 2,
                            .fail_at = k,
                            .interrupted = &interrupted};
        options.num_steps = 3;
        options.interrupted = &interrupted;
        ASSERT_INT(ms_run_plan_faulty(cx, model, &plan, &faulty, &options, &out),
                   MS_EINTERRUPTED);
        ASSERT_INT(cx->num_errors, 0);
        assert_true(out.steps_done < 3);
        for (long step = 0; step < out.steps_done; step++)
            assert_true(isfinite(out.losses[step]) && out.losses[step] > 0.0 &&
                        out.step_s[step] > 0.0 && out.wall_s[step] > 0.0);
        num_broken_off += out.broken_off && out.steps_done > 0;
        num_none += out.steps_done == 0;
    }
    assert_true(num_broken_off > 0 && num_none > 0);
}

/* An interrupted step is finished on all ranks where the grace time is long. */
static void a_step_may_end_after_an_interrupt(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = small_plan();
    const ms_model *model = small_model(cx->arena);
    ms_runner_options options = options_of(model, &plan);
    volatile int interrupted = 0;
    ms_outcome out;
    ms_faulty faulty = {
        .inner = &ms_backend_loop, .rank = 1, .fail_at = 40, .interrupted = &interrupted};
    options.num_steps = 3;
    options.grace_s = 1e9;
    options.interrupted = &interrupted;
    ASSERT_INT(ms_run_plan_faulty(cx, model, &plan, &faulty, &options, &out),
               MS_EINTERRUPTED);
    ASSERT_INT(out.steps_done, 1);
    assert_false(out.broken_off);
}

static void a_loss_that_is_no_number_is_told(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
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
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_plan plan = small_plan();
    ms_runner_options options = ms_run_options(model, &plan, MS_REAL_FP32);
    ms_outcome out;
    options.num_steps = 5;
    options.grace_s = 1e9;
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
        cmocka_unit_test(calls_of_an_offload_may_fail),
        cmocka_unit_test(advice_and_action_are_told),
        cmocka_unit_test(an_interrupt_breaks_a_step_off),
        cmocka_unit_test(a_step_may_end_after_an_interrupt),
        cmocka_unit_test(a_loss_that_is_no_number_is_told),
        cmocka_unit_test(an_interrupt_keeps_the_steps_that_are_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
