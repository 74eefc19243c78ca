#include "sim/validate/kernel_validation.h"

#include "sim/validate/kernels_fit.h"
#include "tests/test.h"

static const char header[] = "source,gpu,op,m,n,k_or_seq,head_dim,causal,dtype,tflops\n";

static ms_kernel_rows read_rows(ms_ctx *cx, const char *lines)
{
    ms_kernel_rows rows;
    const char *text = ms_arena_printf(cx->arena, "%s%s", header, lines);
    ASSERT_OK(ms_kernel_rows_read(cx, "test", text, strlen(text), &rows), cx);
    return rows;
}

static double priced_s(ms_ctx *cx, const ms_kernel_row *row)
{
    ms_pricer pricer;
    ASSERT_OK(ms_kernel_row_pricer(cx, row, &pricer), cx);
    return ms_kernel_row_s(&pricer, row);
}

static void products_are_read_with_their_time(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_kernel_rows rows = read_rows(
        cx, "o/r@1:f,H100-SXM5-80GB,gemm_torch_flow,8192,8192,8192,,,bf16,800\n"
            "o/r@1:f,B200,gemm_grouped_g40_bwd_grad_w,616,3072,5120,,,bf16,500\n"
            "o/r@1:f,B200,gemm_grouped_contiguous_g4,64,3072,5120,,,fp8,500\n");
    ASSERT_NEAR(rows.rows[0].measured_s, 2.0 * pow(8192, 3) / 800e12, 1e-12);
    ASSERT_TEXT(rows.rows[0].origin, "o/r@1");
    /* priced as an isolated kernel: within 5 %, the cost law's error, of the 782.7
     * TFLOP/s that aiconfigurator measured */
    ASSERT_NEAR(2.0 * pow(8192, 3) / priced_s(cx, &rows.rows[0]), 782.7e12, 0.05);
    /* one row that stands for 40 products, run one after the other */
    const ms_kernel_row *grouped = &rows.rows[1];
    ASSERT_NEAR(grouped->measured_s, 40 * 2.0 * 616 * 3072 * 5120 / 500e12, 1e-12);
    ASSERT_NEAR(grouped->product.m, 3072, 0);
    ASSERT_NEAR(grouped->product.k, 616, 0);
    ASSERT_NEAR(grouped->sequence, 40, 0);
    ASSERT_NEAR(rows.rows[2].product.batch, 4, 0);
    assert_false(rows.rows[2].quantizes);
}

static void attention_is_read_with_heads_and_dims(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_kernel_rows rows =
        read_rows(cx, "o/r@1:f,B200,attn_bwd_contig,1,h64kv8,4096,192/128,1,bf16,700\n"
                      "o/r@1:f,A100-SXM,attn_fwdbwd_fa2,4,h32,4096,64,0,fp16,170\n");
    const ms_kernel_row *row = &rows.rows[0];
    double flop = 2.0 * 64 * 4096.0 * 4096.0 * 0.5 * 320;
    ASSERT_NEAR(row->attention.flop, flop, 1e-12);
    ASSERT_NEAR(row->measured_s, 2.5 * flop / 700e12, 1e-12);
    ASSERT_INT(row->kernel, MS_ATTENTION_CUDNN);
    ASSERT_INT(row->passes, MS_KERNEL_BACKWARD);
    ASSERT_INT(rows.rows[1].kernel, MS_ATTENTION_FA2);
    ASSERT_NEAR(rows.rows[1].attention.key_tokens, 8192, 0);
    ASSERT_NEAR(rows.rows[1].measured_s,
                3.5 * 4.0 * 4 * 32 * 4096.0 * 4096.0 * 64 / 170e12, 1e-12);
}

static void rows_that_cannot_be_priced_say_why(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_kernel_rows rows = read_rows(cx, "o/r,H100,gemm_x,1,1,1,,,bf16,-3\n"
                                        "o/r,H9000,gemm_x,1,1,1,,,bf16,3\n"
                                        "o/r,H100,attn_fwd_fa3,1,h8,1024,128,,bf16,3\n"
                                        "o/r,H100,attn_fwd_fa3,1,8,1024,128,1,bf16,3\n"
                                        "o/r,H100,softmax,1,8,1024,128,1,bf16,3\n"
                                        "o/r,H100,gemm_x,1,1\n");
    static const char *const reasons[] = {
        "malformed", "gpu: ", "causal: ", "shape: ", "op: ", "malformed"};
    for (int i = 0; i < 6; i++)
        assert_non_null(strstr(rows.rows[i].reason, reasons[i]));
    assert_non_null(strstr(rows.rows[0].fault, "tflops"));
}

/* Kernels of a source that measures without pauses are priced at the lower clocks of
 * training. */
static void sources_without_pause_run_at_sustained_clocks(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_kernel_rows rows = read_rows(
        cx, "o/r@1:f,B200,gemm_NN_x,16384,16384,16384,,,bf16,1500\n"
            "MooreThreads/SimuMax@1:f,B200,gemm_NN_x,16384,16384,16384,,,bf16,1100\n");
    assert_false(rows.rows[0].sustained);
    assert_true(rows.rows[1].sustained);
    double rates[2];
    for (int i = 0; i < 2; i++)
        rates[i] = ms_gemm_flop_per_s(
            &rows.rows[i].cluster->device, &rows.rows[i].profile->gemm[MS_BF16],
            ms_flop_per_joule(rows.rows[i].profile, MS_BF16), MS_BF16);
    double sustained_frac = rates[1] / rates[0];
    assert_true(sustained_frac < 0.9);
    ASSERT_NEAR(rates[0], 2250e12 * rows.rows[0].profile->gemm[MS_BF16].efficiency.value,
                1e-12);
    ASSERT_NEAR(priced_s(cx, &rows.rows[0]), priced_s(cx, &rows.rows[1]) * sustained_frac,
                0.01);
}

static void of_two_grouped_gradients_the_slower_is_of_sums_in_fp32(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_kernel_rows rows = read_rows(
        cx, "o/r@1:f,B200,gemm_grouped_g64_bwd_grad_w,512,4096,7168,,,bf16,493\n"
            "o/r@1:f,B200,gemm_grouped_g64_fwd,512,4096,7168,,,bf16,493\n"
            "o/r@1:f,B200,gemm_grouped_g64_bwd_grad_w,512,4096,7168,,,bf16,650\n"
            "o/r@1:f,B200,gemm_grouped_g64_fwd,512,4096,7168,,,bf16,650\n");
    static const double bytes[] = {8, 2, 4, 2};
    for (int i = 0; i < 4; i++)
        ASSERT_NEAR(rows.rows[i].product.result_bytes, bytes[i], 0);
    assert_true(priced_s(cx, &rows.rows[0]) > 1.1 * priced_s(cx, &rows.rows[2]));
}

/* Rows of the profile's own source: of the measured products three quarters take the cost
 * law's time, and one quarter runs an eighth faster. A product that is the fastest of
 * many tried shapes (gemm_mamf) is priced like the fast quarter. */
static void the_best_of_many_is_at_the_upper_edge_of_the_law(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *lines = "";
    for (int i = 1; i <= 60; i++)
        lines = ms_arena_printf(
            cx->arena,
            "%sai-dynamo/aiconfigurator@1:f,B200-SXM,gemm_x,%d,8192,8192,,,bf16,1\n",
            lines, 4096 + 128 * i);
    lines = ms_arena_printf(
        cx->arena, "%so/r@1:f,B200-SXM,gemm_mamf,4096,8192,8192,,,bf16,1500\n", lines);
    ms_kernel_rows rows = read_rows(cx, lines);
    for (int i = 0; i < 60; i++)
        rows.rows[i].measured_s =
            priced_s(cx, &rows.rows[i]) / (i % 4 == 0 ? 1.125 : 1.0);
    ms_kernel_validation v;
    ASSERT_OK(ms_kernel_validate(cx, &rows, &v), cx);
    assert_true(rows.rows[60].best_of_many);
    ASSERT_NEAR(v.predicted_s[60], priced_s(cx, &rows.rows[60]) / 1.125, 1e-3);
    rows.rows[60].dtype = MS_FP8; /* the profile was fitted to no FP8 product */
    ASSERT_OK(ms_kernel_validate(cx, &rows, &v), cx);
    ASSERT_NEAR(v.predicted_s[60], priced_s(cx, &rows.rows[60]), 1e-9);
}

/* Times made by the cost law for a machine with four fifths of the clock and 20 us of
 * host time per kernel: both are found. */
static void clock_and_host_of_a_source_are_found(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *lines = "";
    for (int i = 1; i <= 40; i++)
        lines = ms_arena_printf(cx->arena, "%so/r@1:f,H100,gemm_x,%d,4096,%d,,,bf16,1\n",
                                lines, 128 * i, 256 * (41 - i));
    ms_kernel_rows rows = read_rows(cx, lines);
    for (int i = 0; i < rows.num_rows; i++)
        rows.rows[i].measured_s = priced_s(cx, &rows.rows[i]) / 0.8 + 20e-6;
    ms_kernel_validation v;
    ASSERT_OK(ms_kernel_validate(cx, &rows, &v), cx);
    ASSERT_INT(v.num_sources, 1);
    ASSERT_NEAR(v.sources[0].rate_frac, 0.8, 1e-6);
    ASSERT_NEAR(v.sources[0].launch_s, 20e-6, 1e-6);
    assert_true(v.sources[0].adapted.median_ape_frac < 1e-6);
    assert_true(v.sources[0].others.bias_frac < -0.2);
    ASSERT_INT(v.sources[0].fitted.num_rows, 0);
}

/* Times made by the cost law with another rate, in rows of a source that the profile
 * names: the fit finds the rate. */
static void fit_finds_what_made_the_times(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *lines = "";
    for (int i = 1; i <= 60; i++)
        lines = ms_arena_printf(
            cx->arena,
            "%sMooreThreads/SimuMax@1:f,A100-PCIe-80GB,gemm_x,%d,4096,%d,,,bf16,1\n",
            lines, 128 * i, 256 * (61 - i));
    ms_kernel_rows rows = read_rows(cx, lines);
    for (int i = 0; i < rows.num_rows; i++) {
        ms_pricer pricer;
        ASSERT_OK(ms_kernel_row_pricer(cx, &rows.rows[i], &pricer), cx);
        pricer.gemm_flop_per_s =
            0.6 * 312e12 * rows.rows[i].profile->gemm[MS_BF16].sustained_frac.value;
        rows.rows[i].measured_s = ms_kernel_row_s(&pricer, &rows.rows[i]);
    }
    ms_kernels_fit fit;
    ASSERT_OK(ms_kernels_fit_make(cx, &rows, &fit), cx);
    ASSERT_INT(fit.num_fits, 1);
    ASSERT_INT(fit.fits[0].law.num_values, 1);
    ASSERT_TEXT(fit.fits[0].law.values[0].key, "efficiency");
    ASSERT_NEAR(fit.fits[0].law.values[0].fitted.value, 0.6, 1e-6);
    assert_true(fit.fits[0].fitted_errors.num_rows > 10);
    assert_true(fit.fits[0].fitted_errors.median_ape_frac < 1e-6);
    assert_true(fit.fits[0].shipped_errors.bias_frac < -0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_read_with_their_time),
        cmocka_unit_test(attention_is_read_with_heads_and_dims),
        cmocka_unit_test(rows_that_cannot_be_priced_say_why),
        cmocka_unit_test(sources_without_pause_run_at_sustained_clocks),
        cmocka_unit_test(of_two_grouped_gradients_the_slower_is_of_sums_in_fp32),
        cmocka_unit_test(the_best_of_many_is_at_the_upper_edge_of_the_law),
        cmocka_unit_test(clock_and_host_of_a_source_are_found),
        cmocka_unit_test(fit_finds_what_made_the_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
