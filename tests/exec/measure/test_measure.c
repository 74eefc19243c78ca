/* Tests of short measurements on the loop backend: every kind of sample is taken, and
 * repeated launches measure the same cases. */
#include "exec/measure/measure_priv.h"

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
    assert_true(has(&samples, MS_SAMPLE_GEMM, 0));
    assert_true(has(&samples, MS_SAMPLE_STREAM, 0));
    assert_true(has(&samples, MS_SAMPLE_ATTENTION, 0));
    assert_true(has(&samples, MS_SAMPLE_ATTENTION_GRAD, 0));
    /* one rank has no collectives */
    assert_false(has(&samples, MS_SAMPLE_COLLECTIVE, MS_ALL_REDUCE));
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

/* ---- where the program runs ahead ---- */

/* Counts of a mock clock: the loop backend with event time stamps as a GPU has. */
static struct {
    int num_reads, num_open; /* num_open: time stamps read and not yet discarded */
} clock_reads;

static ms_status read_clock(ms_ctx *cx, ms_device_rank *device, double *stamps, long num)
{
    (void)cx;
    (void)device;
    ASSERT_INT(num, 2);
    assert_true(stamps[1] > stamps[0]);
    clock_reads.num_reads++;
    clock_reads.num_open++;
    /* adds a large offset: wrongly subtracted stamps would show */
    stamps[0] += 1000.0;
    stamps[1] += 1000.0;
    return MS_OK;
}

static void forget_stamps(ms_device_rank *device)
{
    (void)device;
    ASSERT_INT(clock_reads.num_open, 1);
    clock_reads.num_open = 0;
}

static ms_backend queued_backend(void)
{
    ms_backend backend = ms_backend_loop;
    backend.read_clock = read_clock;
    backend.forget_stamps = forget_stamps;
    memset(&clock_reads, 0, sizeof clock_reads);
    return backend;
}

static const ms_sample *find_alike(const ms_samples *samples, const ms_sample *sample)
{
    for (int i = 0; i < samples->num; i++)
        if (ms_samples_alike(&samples->items[i], sample))
            return &samples->items[i];
    return NULL;
}

/* The GEMM of zeros has a twin with normal data, of the same time where power sets no
 * clock; the warm-up ended within its limit. */
static void assert_conditions(const ms_samples *samples)
{
    const ms_sample *zeros = NULL, *warm_up = NULL;
    for (int i = 0; i < samples->num; i++) {
        if (samples->items[i].kind == MS_SAMPLE_ZERO_GEMM)
            zeros = &samples->items[i];
        if (samples->items[i].kind == MS_SAMPLE_WARM_UP)
            warm_up = &samples->items[i];
    }
    assert_non_null(zeros);
    assert_non_null(warm_up);
    ms_sample normal = *zeros;
    normal.kind = MS_SAMPLE_GEMM;
    const ms_sample *twin = find_alike(samples, &normal);
    assert_non_null(twin);
    for (int i = 0; i < samples->num; i++)
        if (samples->items[i].kind == MS_SAMPLE_GEMM)
            assert_true(samples->items[i].size[1] * samples->items[i].size[2] *
                            samples->items[i].size[3] <=
                        zeros->size[1] * zeros->size[2] * zeros->size[3]);
    assert_true(zeros->seconds > 0.0 && twin->seconds > 0.0);
    assert_true(warm_up->seconds >= 0.5);
}

static void calls_between_stamps_take_as_long_as_single_ones(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_backend backend = queued_backend();
    ms_samples single = {0}, queued = {0};
    ms_measure how = quick(1, 0);
    how.kernels = true;
    ASSERT_OK(ms_measure_launch(cx, &how, &single), cx);
    how.backend = &backend;
    ASSERT_OK(ms_measure_launch(cx, &how, &queued), cx);
    /* the host's launch, a GEMM of zeros, and the warm-up */
    ASSERT_INT(queued.num, single.num + 3);
    assert_conditions(&queued);
    assert_true(has(&queued, MS_SAMPLE_LAUNCH, 0));
    assert_false(has(&single, MS_SAMPLE_LAUNCH, 0));
    /* two reads to choose the number of repetitions, then three rounds of all cases */
    assert_true(clock_reads.num_reads >= 5 * queued.num);
    double sum = 0.0;
    for (int i = 0; i < single.num; i++) {
        const ms_sample *same = find_alike(&queued, &single.items[i]);
        assert_non_null(same);
        sum += log(same->seconds / single.items[i].seconds);
    }
    /* geometric mean over all cases, as other programs disturb single ones */
    const double ratio = exp(sum / single.num), most_ratio = 3.0;
    if (!(ratio < most_ratio && ratio > 1.0 / most_ratio))
        fail_msg("calls between stamps take %.3g times as long as single ones", ratio);
}

static bool has_product(const ms_kernel_cases *cases, double m, double n, double k)
{
    for (int i = 0; i < cases->num; i++) {
        const double *size = cases->items[i].sample.size;
        if (cases->items[i].sample.kind == MS_SAMPLE_GEMM && size[1] == m &&
            size[2] == n && size[3] == k)
            return true;
    }
    return false;
}

static void assert_gradients_are_wide(const ms_kernel_case *item)
{
    for (int i = 0; i < item->node->num_out; i++) {
        bool gradient =
            item->program->tensors[item->node->out[i]].role == MS_ROLE_WEIGHT_GRADIENT;
        if (gradient || item->node->op == MS_OP_EINSUM)
            ASSERT_INT(item->out[i].scalar, gradient ? MS_SCALAR_FP32 : MS_SCALAR_BF16);
    }
}

static void shapes_for_gpus_are_large(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_backend backend = queued_backend();
    ms_plan plan = ms_plan_default(1);
    plan.size[MS_DP_SHARD] = 1;
    ms_world world = ms_world_make(cx->arena, &plan);
    ms_measure how = {.backend = &backend,
                      .type = MS_REAL_BF16,
                      .num_ranks = 1,
                      .kernels = true,
                      .large = true};
    ms_kernel_cases all, few;
    ASSERT_OK(ms_kernel_cases_make(cx, &how, &world, &all), cx);
    how.quick = true;
    ASSERT_OK(ms_kernel_cases_make(cx, &how, &world, &few), cx);
    assert_true(few.num >= 60 && few.num < 2 * all.num / 3 && all.num <= 400);
    /* MLP products of Llama 3.2 3B: forward, input gradient and weight gradient */
    assert_true(has_product(&few, 4096, 8192, 3072));
    assert_true(has_product(&few, 4096, 3072, 8192));
    assert_true(has_product(&few, 3072, 8192, 4096) ||
                has_product(&few, 8192, 3072, 4096));
    double least[3] = {1e9, 1e9, 1e9}, most[3] = {0};
    double most_keys = 0.0;
    int num_dims = 0;
    for (int i = 0; i < all.num; i++) {
        const ms_sample *sample = &all.items[i].sample;
        if (all.items[i].node != NULL)
            assert_gradients_are_wide(&all.items[i]);
        for (int d = 0; d < 3 && sample->kind == MS_SAMPLE_GEMM; d++) {
            least[d] = fmin(least[d], sample->size[1 + d]);
            most[d] = fmax(most[d], sample->size[1 + d]);
        }
        if (sample->kind == MS_SAMPLE_ATTENTION) {
            most_keys = fmax(most_keys, sample->size[1]);
            num_dims |= sample->size[2] == 64.0 ? 1 : sample->size[2] == 128.0 ? 2 : 4;
        }
    }
    for (int d = 0; d < 3; d++)
        assert_true(least[d] <= 256.0 && most[d] >= 16384.0);
    assert_true(most_keys >= 8192.0);
    ASSERT_INT(num_dims, 3);
    ASSERT_INT(all.items[all.num - 1].sample.kind, MS_SAMPLE_LAUNCH);
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
        cmocka_unit_test(calls_between_stamps_take_as_long_as_single_ones),
        cmocka_unit_test(shapes_for_gpus_are_large),
        cmocka_unit_test(the_machine_is_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
