/* Calibration of a profile: measured samples made with known coefficients give these
 * coefficients back, and the profile that is written prices what was measured. */
#include "costmodel/calibrate/calibration.h"
#include "costmodel/cost/collective_cost.h"
#include "costmodel/cost/kernel_cost.h"

#include "base/rng.h"
#include "tests/test.h"

typedef struct bench {
    ms_ctx *cx;
    ms_cluster cluster; /* a network of one level */
    ms_profile truth;
    const ms_profile *assumed;
    const ms_stack *stack;
    ms_pricer pricer; /* prices kernels with the true coefficients */
    ms_samples samples;
    ms_rng rng;
} bench;

enum {
    LAUNCHES = 4
};

static bench *open_bench(void)
{
    ms_ctx *cx = test_cx();
    bench *b = MS_NEW(cx->arena, bench);
    const ms_cluster *cluster;
    b->cx = cx;
    b->rng = ms_rng_seed(3);
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &cluster), cx);
    ASSERT_OK(ms_profile_load(cx, "h100-sxm", &b->assumed), cx);
    ASSERT_OK(ms_stack_load(cx, "meshsim", &b->stack), cx);
    b->cluster = *cluster;
    b->cluster.num_levels = 1;
    b->truth = *b->assumed;
    b->truth.hbm_frac.value = 0.5;
    b->truth.gemm[MS_FP32].efficiency.value = 0.6;
    b->truth.gemm[MS_FP32].sustained_frac.value = 1.0;
    b->truth.gemm[MS_FP32].k_half.value = 0.0;
    b->truth.gemm[MS_FP32].overhead_s.value = 5e-6;
    b->truth.link_base_s.value = 4e-6;
    b->truth.link_step_s.value = 2e-6;
    b->truth.link_frac.value = 0.3;
    b->truth.ramp.value = 0.0;
    ASSERT_OK(ms_pricer_make(cx, &b->cluster, &b->truth, b->stack, MS_FP32, &b->pricer),
              cx);
    return b;
}

/* Adds a copy of the sample for every launch; each takes `seconds` with random noise of
 * +-1 %, and a typical time 10 % longer. */
static void add(bench *b, ms_sample sample, double seconds)
{
    for (int launch = 0; launch < LAUNCHES; launch++) {
        sample.launch = launch;
        sample.seconds = seconds * (0.99 + 0.02 * ms_rng_uniform(&b->rng));
        sample.typical_s = 1.1 * sample.seconds;
        ms_samples_add(b->cx->arena, &b->samples, &sample);
    }
}

static void add_kernels(bench *b)
{
    for (double m = 256; m <= 8192; m *= 2)
        for (double n = 256; n <= 4096; n *= 4)
            for (double k = 256; k <= 4096; k *= 4)
                add(b,
                    (ms_sample){.kind = MS_SAMPLE_GEMM, .ranks = 2, .size = {1, m, n, k}},
                    ms_gemm_s(&b->pricer, (ms_gemm_shape){1, m, n, k, 4, 4}));
    for (double s = 256; s <= 4096; s *= 2)
        for (double d = 64; d <= 128; d *= 2)
            for (int backward = 0; backward < 2; backward++) {
                ms_attention_shape shape = {.flop = (4 + 6 * backward) * d * s * s,
                                            .key_tokens = s,
                                            .head_dim = d,
                                            .score_elements = s * s,
                                            .query_rows = s,
                                            .traffic_bytes = s * d,
                                            .backward = backward == 1};
                add(b,
                    (ms_sample){.kind = MS_SAMPLE_ATTENTION + backward,
                                .ranks = 2,
                                .size = {shape.flop, s, d, s * s, s * d}},
                    ms_attention_s(&b->pricer, shape));
            }
    for (double bytes = 1e4; bytes <= 1e8; bytes *= 10)
        add(b,
            (ms_sample){.kind = MS_SAMPLE_POINTWISE,
                        .what = MS_OP_ADD,
                        .ranks = 2,
                        .size = {bytes}},
            bytes / b->pricer.hbm_bytes_per_s);
    for (double bytes = 1e8; bytes <= 4e8; bytes *= 2)
        add(b, (ms_sample){.kind = MS_SAMPLE_STREAM, .ranks = 2, .size = {bytes}},
            bytes / b->pricer.hbm_bytes_per_s);
}

static void add_collectives(bench *b)
{
    for (long ranks = 2; ranks <= 8; ranks *= 2)
        for (int kind = MS_ALL_GATHER; kind <= MS_ALL_REDUCE; kind++) {
            ms_span span = {.size = ranks};
            span.per_domain[0] = ranks;
            ms_profile plain = b->truth;
            plain.nvls_bytes_per_s.value = NAN;
            ms_collective_law law =
                ms_collective_law_make((ms_collective)kind, &span, &b->cluster, &plain);
            for (double bytes = 64; bytes <= 1e8; bytes *= 4)
                add(b,
                    (ms_sample){.kind = MS_SAMPLE_COLLECTIVE,
                                .what = kind,
                                .ranks = ranks,
                                .size = {bytes}},
                    ms_collective_s(&law, bytes));
        }
}

static ms_calibration_input input_of(const bench *b)
{
    return (ms_calibration_input){.samples = &b->samples,
                                  .num_launches = LAUNCHES,
                                  .cluster = &b->cluster,
                                  .assumed = b->assumed,
                                  .stack = b->stack,
                                  .compute = MS_FP32,
                                  .ranks = 2,
                                  .machine = {.cpu = "a test"},
                                  .date = "2026-11-21",
                                  .backend = "loop"};
}

static void coefficients_are_recovered(void **state)
{
    (void)state;
    bench *b = open_bench();
    add_kernels(b);
    add_collectives(b);
    ms_profile *assumed = MS_NEW(b->cx->arena, ms_profile);
    *assumed = *b->assumed;
    assumed->nvls_bytes_per_s.value = NAN;
    b->assumed = assumed;
    ms_calibration_input input = input_of(b);
    ms_calibration *c = MS_NEW(b->cx->arena, ms_calibration);
    ASSERT_OK(ms_calibration_make(b->cx, &input, c), b->cx);
    const ms_gemm_profile *gemm = &c->profile.gemm[MS_FP32];
    ASSERT_NEAR(gemm->efficiency.value, 0.6, 0.01);
    ASSERT_NEAR(gemm->overhead_s.value, 5e-6, 0.02);
    ASSERT_NEAR(c->profile.hbm_frac.value, 0.5, 0.01);
    ASSERT_NEAR(c->profile.attention[MS_ATTENTION_FA2].forward_flop_per_s.value,
                b->pricer.attention_forward_flop_per_s, 0.03);
    ASSERT_NEAR(c->profile.link_base_s.value, 4e-6, 0.03);
    ASSERT_NEAR(c->profile.link_step_s.value, 2e-6, 0.03);
    ASSERT_NEAR(c->profile.link_frac.value, 0.3, 0.02);
    assert_int_equal(c->profile.link_frac.from, MS_FITTED);
    assert_true(isnan(c->profile.gemm[MS_BF16].efficiency.value));
    assert_true(c->launch_ratio < 1.01 && c->case_ratio_p90 < 1.03);
    ASSERT_NEAR(c->typical_ratio, 1.1, 1e-9);
}

/* A GEMM of zeros and a warm-up are told, and change neither fits nor spreads. */
static void conditions_are_told(void **state)
{
    (void)state;
    bench *b = open_bench();
    add_kernels(b);
    add_collectives(b);
    ms_calibration_input input = input_of(b);
    ms_calibration *plain = MS_NEW(b->cx->arena, ms_calibration);
    ASSERT_OK(ms_calibration_make(b->cx, &input, plain), b->cx);
    assert_true(isnan(plain->zero_ratio) && isnan(plain->warm_up_s));
    ASSERT_TEXT(plain->profile.measured->machine.conditions,
                "signed normal operands, cases of a round in random order");
    ms_sample large = {.kind = MS_SAMPLE_GEMM, .ranks = 2, .size = {1, 8192, 4096, 4096}};
    for (int i = 0; i < plain->input->samples->num; i++) {
        ms_sample zeros = plain->input->samples->items[i];
        if (!ms_samples_alike(&zeros, &large))
            continue;
        zeros.kind = MS_SAMPLE_ZERO_GEMM;
        zeros.seconds *= 0.875;
        ms_samples_add(b->cx->arena, &b->samples, &zeros);
    }
    for (int launch = 0; launch < LAUNCHES; launch++)
        ms_samples_add(b->cx->arena, &b->samples,
                       &(ms_sample){.kind = MS_SAMPLE_WARM_UP,
                                    .ranks = 2,
                                    .launch = launch,
                                    .size = {launch > 0},
                                    .seconds = 1.5,
                                    .typical_s = 1.5});
    ms_calibration *c = MS_NEW(b->cx->arena, ms_calibration);
    ASSERT_OK(ms_calibration_make(b->cx, &input, c), b->cx);
    ASSERT_NEAR(c->zero_ratio, 0.875, 1e-12);
    ASSERT_NEAR(c->warm_up_s, 1.5, 0.0);
    assert_false(c->steady);
    ASSERT_TEXT(
        c->profile.measured->machine.conditions,
        "signed normal operands, cases of a round in random order, warm-up of 1.5 "
        "s until times were nearly steady; the largest GEMM takes 0.875 of its "
        "time with zeros");
    ASSERT_INT(c->num_cases, plain->num_cases);
    ASSERT_NEAR(c->launch_ratio, plain->launch_ratio, 0.0);
    ASSERT_NEAR(c->profile.gemm[MS_FP32].efficiency.value,
                plain->profile.gemm[MS_FP32].efficiency.value, 0.0);
}

/* A matrix product of an odd shape, measured 3 times as slow as the cost law says, is
 * priced as measured by the profile that is written and read again. */
static void the_written_profile_prices_what_was_measured(void **state)
{
    (void)state;
    bench *b = open_bench();
    add_kernels(b);
    add_collectives(b);
    ms_gemm_shape odd = {1, 300, 3000, 100, 4, 4};
    double odd_s = 3.0 * ms_gemm_s(&b->pricer, odd);
    add(b,
        (ms_sample){.kind = MS_SAMPLE_GEMM, .ranks = 2, .size = {1, odd.m, odd.n, odd.k}},
        odd_s);
    ms_calibration_input input = input_of(b);
    ms_calibration *c = MS_NEW(b->cx->arena, ms_calibration);
    ASSERT_OK(ms_calibration_make(b->cx, &input, c), b->cx);
    FILE *file = tmpfile();
    ms_jout out = ms_jout_open(file);
    ms_profile_write_json(&out, &c->profile, "2026-11-21");
    ms_jout_close(&out);
    const char *text = test_read_back(b->cx->arena, file);
    ms_jdoc *doc;
    ms_jval root;
    ms_profile read;
    ASSERT_OK(ms_json_parse(b->cx, "written", text, strlen(text), &doc, &root), b->cx);
    ASSERT_OK(ms_profile_read(b->cx, root, &read), b->cx);
    ms_json_close(doc);
    ASSERT_NEAR(read.link_base_s.value, c->profile.link_base_s.value, 1e-5);
    ASSERT_INT(read.measured->num_curves, 9);
    ms_pricer pricer;
    ASSERT_OK(ms_pricer_make(b->cx, &b->cluster, &read, b->stack, MS_FP32, &pricer),
              b->cx);
    ASSERT_NEAR(ms_gemm_s(&pricer, odd), odd_s, 0.015);
    ms_gemm_shape usual = {1, 512, 1024, 1024, 4, 4};
    ASSERT_NEAR(ms_gemm_s(&pricer, usual), ms_gemm_s(&b->pricer, usual), 0.02);
}

static void launches_of_kernels_are_measured_where_the_host_runs_ahead(void **state)
{
    (void)state;
    bench *b = open_bench();
    add_kernels(b);
    ms_calibration_input input = input_of(b);
    ms_calibration *c = MS_NEW(b->cx->arena, ms_calibration);
    ASSERT_OK(ms_calibration_make(b->cx, &input, c), b->cx);
    assert_true(c->profile.launch_s.value == 0.0);
    add(b, (ms_sample){.kind = MS_SAMPLE_LAUNCH, .ranks = 2, .size = {1}}, 3e-6);
    input.machine.gpu = "a GPU";
    ASSERT_OK(ms_calibration_make(b->cx, &input, c), b->cx);
    ASSERT_NEAR(c->profile.launch_s.value, 3e-6, 0.01);
    assert_int_equal(c->profile.launch_s.from, MS_MEASURED);
    assert_non_null(strstr(c->profile.launch_s.source, "a GPU: the host's time"));
    assert_null(strstr(c->profile.source, "attention"));
    input.kernels = "attention by cudnn kernels";
    ASSERT_OK(ms_calibration_make(b->cx, &input, c), b->cx);
    assert_non_null(strstr(c->profile.source, "a GPU, attention by cudnn kernels"));
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_calibration_input input = input_of(b);
    ms_calibration *c = MS_NEW(b->cx->arena, ms_calibration);
    ASSERT_INT(ms_calibration_make(b->cx, &input, c), MS_EINPUT);
    assert_non_null(
        strstr(test_messages(b->cx), "no sum of two large arrays was measured"));
}

static void samples_read_back(void **state)
{
    (void)state;
    bench *b = open_bench();
    add_collectives(b);
    FILE *file = tmpfile();
    ms_jout out = ms_jout_open(file);
    ms_samples_write(&out, &b->samples);
    ms_jout_close(&out);
    const char *text = test_read_back(b->cx->arena, file);
    ms_jdoc *doc;
    ms_jval root;
    ms_samples read = {0};
    ASSERT_OK(ms_json_parse(b->cx, "s.json", text, strlen(text), &doc, &root), b->cx);
    ASSERT_OK(ms_samples_read(b->cx, root, &read), b->cx);
    ms_json_close(doc);
    ASSERT_INT(read.num, b->samples.num);
    assert_memory_equal(read.items, b->samples.items,
                        (size_t)read.num * sizeof *read.items);
    const char *bad = "[[0, 0, 1, 0, 1, 1, 1, 1, 1, 0, 1]]";
    ASSERT_OK(ms_json_parse(b->cx, "s.json", bad, strlen(bad), &doc, &root), b->cx);
    ASSERT_INT(ms_samples_read(b->cx, root, &read), MS_EINPUT);
    ms_json_close(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coefficients_are_recovered),
        cmocka_unit_test(conditions_are_told),
        cmocka_unit_test(the_written_profile_prices_what_was_measured),
        cmocka_unit_test(launches_of_kernels_are_measured_where_the_host_runs_ahead),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(samples_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
