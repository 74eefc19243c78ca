/* A short measurement on the loop backend: every kind of sample is there, in every launch alike. */
#include "exec/measure.h"

#include "tests/test.h"

static ms_measure quick(long num_ranks, int launch)
{
    return (ms_measure){.backend = &ms_backend_loop,
                        .type = MS_REAL_FP32,
                        .num_ranks = num_ranks,
                        .quick = true,
                        .launch = launch};
}

static bool has(const ms_samples *samples, int kind, int what)
{
    for (int i = 0; i < samples->num; i++)
        if (samples->items[i].kind == kind && samples->items[i].what == what)
            return true;
    return false;
}

static void kernels_of_small_models_are_measured(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_samples samples = {0};
    ms_measure how = quick(1, 0);
    how.kernels = true;
    ASSERT_OK(ms_measure_launch(cx, &how, &samples), cx);
    static const ms_op ops[] = {MS_OP_ADD,        MS_OP_NORM,       MS_OP_NORM_GRAD,
                                MS_OP_ROTARY,     MS_OP_EMBED,      MS_OP_LOSS_SUM,
                                MS_OP_LOSS_GRAD,  MS_OP_ACTIVATION, MS_OP_ADAM,
                                MS_OP_BIAS,       MS_OP_PERMUTE,    MS_OP_UNPERMUTE_GRAD,
                                MS_OP_ROUTE_GRAD, MS_OP_EMBED_GRAD};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!has(&samples, MS_SAMPLE_POINTWISE, ops[i]))
            fail_msg("%s is not measured", ms_op_names[ops[i]]);
    assert_true(has(&samples, MS_SAMPLE_PRODUCT, 0));
    assert_true(has(&samples, MS_SAMPLE_STREAM, 0));
    assert_true(has(&samples, MS_SAMPLE_ATTENTION, 0));
    assert_true(has(&samples, MS_SAMPLE_ATTENTION_GRAD, 0));
    assert_false(has(&samples, MS_SAMPLE_COLLECTIVE, MS_ALL_REDUCE)); /* of one rank */
    for (int i = 0; i < samples.num; i++)
        assert_true(samples.items[i].seconds > 0.0 && samples.items[i].seconds < 1e3);
}

static void launches_measure_the_same_cases(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    for (long ranks = 2; ranks <= 3; ranks++) {
        ms_samples samples = {0};
        for (int launch = 0; launch < 2; launch++) {
            ms_measure how = quick(ranks, launch);
            how.type = MS_REAL_FP64;
            ASSERT_OK(ms_measure_launch(cx, &how, &samples), cx);
        }
        int half = samples.num / 2;
        ASSERT_INT(samples.num, 2 * half);
        assert_true(half >= MS_NUM_COLLECTIVES * 7);
        for (int i = 0; i < half; i++) {
            const ms_sample *a = &samples.items[i], *b = &samples.items[half + i];
            assert_true(a->what == b->what && a->ranks == ranks && b->launch == 1);
            assert_memory_equal(a->size, b->size, sizeof a->size);
        }
        for (int kind = 0; kind < MS_NUM_COLLECTIVES; kind++)
            assert_true(has(&samples, MS_SAMPLE_COLLECTIVE, kind));
    }
}

static void the_machine_is_described(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_machine machine = ms_machine_here(cx->arena);
    assert_non_null(machine.cores);
    assert_non_null(machine.kernel);
    assert_non_null(machine.blas);
    assert_true(ms_machine_cores() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_small_models_are_measured),
        cmocka_unit_test(launches_measure_the_same_cases),
        cmocka_unit_test(the_machine_is_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
