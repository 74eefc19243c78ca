/* Profiles with measurements of kernels and collectives: reading, writing, and how
 * they replace the cost laws. */
#include "costmodel/cost/bill.h"
#include "costmodel/cost/collective_cost.h"
#include "costmodel/cost/kernel_cost.h"
#include "costmodel/program/program.h"

#include "tests/test.h"

static const char products[] =
    "\"products\": [[1, 64, 64, 64, 1e-6], [1, 256, 64, 1024, 3e-6], "
    "[1, 1024, 1024, 1024, 2e-5]]";
static const char curves[] =
    "\"collectives\": {\"all-gather\": {\"2\": [[8, 1e-6], [64, 1.5e-6], [1024, 1.2e-6],"
    " [4096, 6e-6]]}}";

/* The profile's member "measured" as JSON text, with the given members. */
static const char *measured_text(ms_ctx *cx, const char *with_products,
                                 const char *with_curves)
{
    return ms_arena_printf(
        cx->arena,
        "{\"dtype\": \"bf16\", \"ranks\": 2, \"machine\": {\"cpu\": \"some\"}, %s, "
        "\"attention_forward\": [[1e6, 64, 64, 4096, 1e5, 1e-5], [1e9, 1024, 128, 1e6, "
        "1e6, 1e-3]], \"attention_backward\": [[2e6, 64, 64, 4096, 2e5, 3e-5], [2e9, "
        "1024, 128, 1e6, 2e6, 3e-3]], %s}",
        with_products, with_curves);
}

static ms_status read_text(ms_ctx *cx, const char *text, ms_sweep *out)
{
    ms_jdoc *doc;
    ms_jval root;
    MS_TRY(ms_json_parse(cx, "m.json", text, strlen(text), &doc, &root));
    ms_status status = ms_sweep_read(cx, root, out);
    ms_json_close(doc);
    return status;
}

static void errors_name_the_row(void **state)
{
    (void)state;
    static const struct {
        const char *products, *curves, *message;
    } rows[] = {
        {"\"products\": [[1, 64, 64, 64, 1e-6]]", curves,
         "1 rows are too few to interpolate (at /products)"},
        {"\"products\": [[1, 64, 64, 64, 1e-6], [1, 64, 64, 1e-6]]", curves,
         "a row must be an array of 5 numbers (at /products/1)"},
        {"\"products\": [[1, 64, 64, 64, -1e-6], [1, 64, 64, 64, 1]]", curves,
         "must be between 0 and"},
        {"\"products\": [[1, 64, 64, 64, 0], [1, 64, 64, 64, 1]]", curves,
         "measured values must be above 0, not 0"},
        {"\"products\": 3", curves, "must be an array of at most 4096 rows"},
        {products, "\"collectives\": {\"all-gather\": {\"2\": [[8, 1e-6], [8, 1e-6]]}}",
         "sizes must grow: 8 bytes after 8"},
        {products, "\"collectives\": {\"all-gather\": {\"two\": [[8, 1e-6], [9, 1e-6]]}}",
         "\"two\" is no number of ranks"},
        {products, "\"collectives\": {\"gather\": {}}", "gather"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_ctx *cx = test_cx();
        ms_sweep measured;
        ASSERT_INT(
            read_text(cx, measured_text(cx, rows[i].products, rows[i].curves), &measured),
            MS_EINPUT);
        const char *messages = test_messages(cx);
        if (strstr(messages, rows[i].message) == NULL)
            fail_msg("expected \"%s\" in:\n%s", rows[i].message, messages);
    }
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_sweep first, second;
    ASSERT_OK(read_text(cx, measured_text(cx, products, curves), &first), cx);
    FILE *file = tmpfile();
    ms_jout out = ms_jout_open(file);
    ms_sweep_write(&out, &first);
    ms_jout_close(&out);
    ASSERT_OK(read_text(cx, test_read_back(cx->arena, file), &second), cx);
    ASSERT_INT(second.products.num, 3);
    for (int i = 0; i < 3 * MS_GEMM_COLUMNS; i++)
        ASSERT_NEAR(second.products.values[i], first.products.values[i], 0);
    ASSERT_INT(second.num_curves, 1);
    ASSERT_NEAR(second.curves[0].rows.values[7], 6e-6, 0);
    ASSERT_TEXT(second.machine.cpu, "some");
    ASSERT_INT(second.dtype, MS_BF16);
}

static void curves_are_straight_in_logarithms(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_sweep measured;
    ASSERT_OK(read_text(cx, measured_text(cx, products, curves), &measured), cx);
    const ms_sweep_curve *curve = ms_sweep_find(&measured, MS_ALL_GATHER, 2);
    assert_non_null(curve);
    assert_null(ms_sweep_find(&measured, MS_ALL_GATHER, 3));
    double seconds;
    assert_true(ms_sweep_curve_s(curve, 8, &seconds));
    ASSERT_NEAR(seconds, 1e-6, 1e-12);
    assert_true(ms_sweep_curve_s(curve, sqrt(8.0 * 64.0), &seconds));
    ASSERT_NEAR(seconds, sqrt(1e-6 * 1.5e-6), 1e-12);
    assert_true(ms_sweep_curve_s(curve, 1024, &seconds));
    /* 1024 bytes get the longer time of 64 bytes: more bytes never take less time */
    ASSERT_NEAR(seconds, 1.5e-6, 1e-12);
    assert_true(ms_sweep_curve_s(curve, 4096, &seconds));
    ASSERT_NEAR(seconds, 6e-6, 1e-12);
    assert_false(ms_sweep_curve_s(curve, 7, &seconds));
    assert_false(ms_sweep_curve_s(curve, 4097, &seconds));
}

static void residuals_fade_with_distance(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_residuals *residuals = ms_residuals_make(cx->arena, 2);
    ms_residuals_add(residuals, (const double[3]){64, 64, 64}, 2.0);
    ms_residuals_add(residuals, (const double[3]){256, 64, 64}, 0.5);
    ASSERT_NEAR(ms_residuals_ratio(residuals, (const double[3]){64, 64, 64}), 2.0, 1e-6);
    ASSERT_NEAR(ms_residuals_ratio(residuals, (const double[3]){256, 64, 64}), 0.5, 1e-6);
    ASSERT_NEAR(ms_residuals_ratio(residuals, (const double[3]){128, 64, 64}), 1.0,
                1e-12);
    double near = ms_residuals_ratio(residuals, (const double[3]){80, 64, 64});
    assert_true(near > 1.5 && near < 2.0);
    ASSERT_NEAR(ms_residuals_ratio(residuals, (const double[3]){1e6, 1e6, 1e6}), 1.0,
                0.001);
}

/* ---- laws ---- */

typedef struct setting {
    ms_cluster cluster; /* a network of one level */
    ms_profile plain, profile;
    const ms_stack *stack;
} setting;

static void open_system(ms_ctx *cx, setting *s, ms_sweep *measured)
{
    const ms_cluster *cluster;
    const ms_profile *profile;
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &cluster), cx);
    ASSERT_OK(ms_profile_load(cx, cluster->device.profile, &profile), cx);
    ASSERT_OK(ms_stack_load(cx, "generic", &s->stack), cx);
    ASSERT_OK(read_text(cx, measured_text(cx, products, curves), measured), cx);
    s->cluster = *cluster;
    s->cluster.num_levels = 1;
    s->plain = s->profile = *profile;
    s->profile.measured = measured;
}

static void measured_kernels_take_what_was_measured(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    setting s;
    ms_sweep measured;
    open_system(cx, &s, &measured);
    ms_pricer pricer, plain, other;
    ASSERT_OK(ms_pricer_make(cx, &s.cluster, &s.profile, s.stack, MS_BF16, &pricer), cx);
    ASSERT_OK(ms_pricer_make(cx, &s.cluster, &s.plain, s.stack, MS_BF16, &plain), cx);
    ASSERT_OK(ms_pricer_make(cx, &s.cluster, &s.profile, s.stack, MS_FP8, &other), cx);
    ASSERT_NEAR(ms_gemm_s(&pricer, (ms_gemm_shape){1, 256, 64, 1024, 2, 2}), 3e-6, 1e-6);
    ms_attention_shape shape = {.flop = 2e9,
                                .key_tokens = 1024,
                                .head_dim = 128,
                                .score_elements = 1e6,
                                .query_rows = 1e6 / 1024,
                                .traffic_bytes = 2e6,
                                .backward = true};
    ASSERT_NEAR(ms_attention_s(&pricer, shape), 3e-3, 1e-6);
    /* The cost law prices a product far from all measured ones, and one of another
     * data type. */
    ms_gemm_shape far = {1, 1e6, 1e6, 1e6, 2, 2};
    ASSERT_NEAR(ms_gemm_s(&pricer, far), ms_gemm_s(&plain, far), 0.02);
    assert_null(other.products);
}

/* A GEMM measured at a fiftieth of its fitted time makes its neighbours as fast, but none
 * faster than the device's peak. */
static void neighbours_of_measured_kernels_stay_below_the_peak(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    setting s;
    ms_sweep measured;
    open_system(cx, &s, &measured);
    double row[] = {1, 256, 64, 1024, 1e-7};
    measured.products = (ms_sweep_rows){1, row};
    ms_pricer pricer;
    ASSERT_OK(ms_pricer_make(cx, &s.cluster, &s.profile, s.stack, MS_BF16, &pricer), cx);
    ASSERT_NEAR(pricer.peak_flop_per_s, s.cluster.device.peak_flop_per_s[MS_BF16], 0.0);
    double fastest = 0.0;
    for (double scale = 1.0; scale <= 1024.0; scale *= 2.0) {
        ms_gemm_shape shape = {1, 256 * scale, 64 * scale, 1024, 2, 2};
        double flop = 2.0 * shape.m * shape.n * shape.k;
        fastest = fmax(fastest, flop / ms_gemm_kernel_s(&pricer, shape));
    }
    ASSERT_NEAR(fastest, pricer.peak_flop_per_s, 1e-12);
}

static void measured_collectives_take_what_was_measured(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    setting s;
    ms_sweep measured;
    open_system(cx, &s, &measured);
    ms_span span = {.size = 2, .tier = 0};
    span.per_domain[0] = 2;
    ms_collective_law law =
        ms_collective_law_make(MS_ALL_GATHER, &span, &s.cluster, &s.profile);
    ms_collective_law fitted =
        ms_collective_law_make(MS_ALL_GATHER, &span, &s.cluster, &s.plain);
    ASSERT_NEAR(ms_collective_s(&law, 4096), 6e-6, 1e-12);
    ASSERT_NEAR(ms_collective_s(&law, 1e9),
                ms_collective_s(&fitted, 1e9) * 6e-6 / ms_collective_s(&fitted, 4096),
                1e-12);
    ASSERT_NEAR(ms_collective_s(&law, 1e-3),
                ms_collective_s(&fitted, 1e-3) * 1e-6 / ms_collective_s(&fitted, 8),
                1e-12);
    ASSERT_NEAR(ms_collective_s(&law, 0), 0, 0);
    law = ms_collective_law_make(MS_ALL_REDUCE, &span, &s.cluster, &s.profile);
    assert_null(law.measured);
    /* measurements are not used with two network levels: they do not say which of the two
     * levels the measured group spanned */
    s.cluster.num_levels = 2;
    law = ms_collective_law_make(MS_ALL_GATHER, &span, &s.cluster, &s.profile);
    assert_null(law.measured);
}

static void rates_of_operations_replace_traffic(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    setting s;
    ms_sweep measured;
    open_system(cx, &s, &measured);
    s.profile.pointwise = MS_NEW_ARRAY(cx->arena, MS_NUM_OPS, ms_pointwise_profile);
    for (int i = 0; i < MS_NUM_OPS; i++)
        s.profile.pointwise[i].bytes_per_s.value = NAN;
    ms_pricer pricer;
    ASSERT_OK(ms_pricer_make(cx, &s.cluster, &s.profile, s.stack, MS_BF16, &pricer), cx);
    double streamed_s = ms_stream_s(&pricer, 1e6 * s.stack->optimizer_bytes.value);
    ASSERT_NEAR(ms_update_s(&pricer, 1e6), streamed_s, 0);
    s.profile.pointwise[MS_OP_ADAM].bytes_per_s.value = 1e9;
    s.profile.pointwise[MS_OP_ADAM].overhead_s.value = 1e-6;
    ASSERT_NEAR(ms_update_s(&pricer, 1e6), 7 * 2 * 1e6 / 1e9 + 1e-6, 1e-12);
    ASSERT_NEAR(ms_update_s(&pricer, 0), 0, 0);
    assert_null(ms_pricer_pointwise(&pricer, MS_OP_NORM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_name_the_row),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(curves_are_straight_in_logarithms),
        cmocka_unit_test(residuals_fade_with_distance),
        cmocka_unit_test(measured_kernels_take_what_was_measured),
        cmocka_unit_test(neighbours_of_measured_kernels_stay_below_the_peak),
        cmocka_unit_test(measured_collectives_take_what_was_measured),
        cmocka_unit_test(rates_of_operations_replace_traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
