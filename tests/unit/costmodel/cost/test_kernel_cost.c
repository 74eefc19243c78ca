#include "costmodel/cost/kernel_cost.h"

#include "tests/test.h"

static ms_pricer make_pricer(ms_ctx *cx, const char *cluster_name, const char *stack_name,
                             ms_dtype compute)
{
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
    ms_pricer pricer;
    ASSERT_OK(ms_cluster_load(cx, cluster_name, &cluster), cx);
    ASSERT_OK(ms_profile_load(cx, cluster->device.profile, &profile), cx);
    ASSERT_OK(ms_stack_load(cx, stack_name, &stack), cx);
    ASSERT_OK(ms_pricer_make(cx, cluster, profile, stack, compute, &pricer), cx);
    return pricer;
}

static ms_gemm_shape product(double m, double n, double k, double element_bytes)
{
    return (ms_gemm_shape){.batch = 1,
                           .m = m,
                           .n = n,
                           .k = k,
                           .element_bytes = element_bytes,
                           .result_bytes = 2};
}

/* Rates (TFLOP/s) of isolated matrix products from ai-dynamo/aiconfigurator @095f58a
 * systems/data gemm tables. The cost law has four coefficients per device and type;
 * its median error is 3 to 9 %, its 90th percentile about 15 % (B200 shapes jump by 10
 * % without a pattern): hence a tolerance of 17 % for each shape here, of which the
 * worst is off by 16.2 %. */
static void isolated_products_match_published_rates(void **state)
{
    (void)state;
    static const struct {
        const char *cluster;
        ms_dtype compute;
        double m, n, k, tflop_per_s;
    } rows[] = {
        {"hgx-a100-80g", MS_BF16, 8192, 8192, 8192, 262.5},
        {"hgx-a100-80g", MS_BF16, 4096, 65536, 8192, 261.4},
        {"hgx-a100-80g", MS_BF16, 2048, 16384, 4096, 265.0},
        {"hgx-a100-80g", MS_BF16, 4096, 4096, 1024, 231.9},
        {"hgx-h100", MS_BF16, 8192, 8192, 8192, 782.7},
        {"hgx-h100", MS_BF16, 4096, 65536, 8192, 719.1},
        {"hgx-h100", MS_BF16, 2048, 16384, 4096, 792.4},
        {"hgx-h100", MS_BF16, 4096, 4096, 1024, 613.5},
        {"hgx-h100", MS_FP8, 8192, 8192, 8192, 1243.0},
        {"hgx-h100", MS_FP8, 2048, 16384, 4096, 1119.0},
        {"hgx-b200", MS_BF16, 8192, 8192, 8192, 1492.0},
        {"hgx-b200", MS_BF16, 8192, 16384, 8192, 1380.0},
        {"hgx-b200", MS_FP8, 8192, 8192, 8192, 2335.0},
        {"hgx-b200", MS_FP8, 2048, 16384, 4096, 2559.0},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_pricer pricer = make_pricer(cx, rows[i].cluster, "generic", rows[i].compute);
        pricer.gemm_flop_per_s = pricer.device->peak_flop_per_s[rows[i].compute] *
                                 pricer.profile->gemm[rows[i].compute].efficiency.value;
        double flop = 2.0 * rows[i].m * rows[i].n * rows[i].k;
        double time_s =
            ms_quantized_gemm_s(&pricer, product(rows[i].m, rows[i].n, rows[i].k,
                                                 ms_dtype_bytes(rows[i].compute)));
        ASSERT_NEAR(flop / time_s * 1e-12, rows[i].tflop_per_s, 0.17);
    }
}

static double fourth_root_of_sum(double x, double y, double z)
{
    return pow(pow(x, 4) + pow(y, 4) + pow(z, 4), 0.25);
}

/* The cost law of matrix products with round coefficients, by hand. A result of 512 x 768
 * is 4 x 3 tiles of 128 x 256; on 10 multiprocessors these are 1.2 waves. Half of the
 * idle 0.8 wave is lost, which makes 1.6. Tiles of half the size, 24 in 2.4 waves, are no
 * better, since they lose twice as much efficiency. */
static void law_of_products_by_hand(void **state)
{
    (void)state;
    ms_device device = {.num_sms = 10};
    ms_profile profile = {.tile_m.value = 128,
                          .tile_n.value = 256,
                          .wave_frac.value = 0.5,
                          .small_tile_loss.value = 3.0};
    profile.gemm[MS_BF16].k_half.value = 100;
    profile.gemm[MS_BF16].overhead_s.value = 1e-6;
    profile.gemm[MS_BF16].depth_s.value = 1e-10;
    ms_pricer pricer = {.device = &device,
                        .slowdown = 1,
                        .profile = &profile,
                        .compute = MS_BF16,
                        .gemm_flop_per_s = 1e12,
                        .gemm_hbm_bytes_per_s = 1e12};
    double wave = 10 * 2.0 * 128 * 256 * 1100 / 1e12;
    double traffic = (2.0 * 1000 * (512 + 768) + 2.0 * 512 * 768) / 1e12;
    ASSERT_NEAR(ms_gemm_kernel_s(&pricer, product(512, 768, 1000, 2)),
                fourth_root_of_sum(1.6 * wave, traffic, 1e-7) + 1e-6, 1e-12);
    /* A result of 513 rows needs 5 x 3 tiles of 128 x 256, 1.5 waves (1.75 with half of
     * the idle rest), or 3 x 6 tiles of 256 x 128, 1.8 waves. */
    traffic = (2.0 * 1000 * (513 + 768) + 2.0 * 513 * 768) / 1e12;
    ASSERT_NEAR(ms_gemm_kernel_s(&pricer, product(513, 768, 1000, 2)),
                fourth_root_of_sum(1.75 * wave, traffic, 1e-7) + 1e-6, 1e-12);
    /* A result of one row takes 1 x 12 tiles of 64 x 64, if small tiles lose no
     * efficiency: 1.2 waves (1.6 with half of the idle rest), each an eighth as long. */
    profile.small_tile_loss.value = 0.0;
    ASSERT_NEAR(
        ms_gemm_kernel_s(&pricer, product(1, 768, 1000, 2)),
        fourth_root_of_sum(1.6 * wave / 8, (2.0 * 1000 * 769 + 2.0 * 768) / 1e12, 1e-7) +
            1e-6,
        1e-12);
    ASSERT_NEAR(ms_gemm_kernel_s(&pricer, product(0, 768, 1000, 2)), 0, 0);
    /* In a deep and narrow product, one block loops over all of k by itself. */
    profile.gemm[MS_BF16].depth_s.value = 1e-6;
    ASSERT_NEAR(ms_gemm_kernel_s(&pricer, product(1, 1, 1e6, 2)), 1.0, 1e-3);
}

static void sums_of_32_bits_are_not_all_hidden(void **state)
{
    (void)state;
    ms_device device = {.num_sms = 10};
    ms_profile profile = {.tile_m.value = 128, .tile_n.value = 256};
    ms_pricer pricer = {.device = &device,
                        .slowdown = 1,
                        .profile = &profile,
                        .compute = MS_BF16,
                        .gemm_flop_per_s = 1e12,
                        .gemm_hbm_bytes_per_s = 1e12};
    ms_gemm_shape shape = product(1280, 256, 4096, 2);
    double narrow_s = ms_gemm_kernel_s(&pricer, shape);
    /* the fp32 result is read, added to and written: half of the 6 bytes beyond 16
     * bits show */
    shape.result_bytes = 8;
    ASSERT_NEAR(ms_gemm_kernel_s(&pricer, shape) - narrow_s, 3.0 * 1280 * 256 / 1e12,
                0.01);
}

static void operands_of_8_bits_are_made(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pricer pricer = make_pricer(cx, "hgx-h100", "generic", MS_FP8);
    const ms_gemm_profile *fp8 = &pricer.profile->gemm[MS_FP8];
    ms_gemm_shape shape = product(4096, 4096, 8192, 2);
    double product_s = ms_gemm_kernel_s(&pricer, shape);
    ASSERT_NEAR(ms_quantized_gemm_s(&pricer, shape) - product_s,
                fp8->quantize_overhead_s.value +
                    3.0 * 4096 * 8192 / (fp8->quantize_frac.value * 3.35e12),
                1e-9);
    /* quantizing in training streams memory */
    ASSERT_NEAR(ms_gemm_s(&pricer, shape) - product_s,
                3.0 * 4096 * 8192 / (0.8 * 3.35e12), 1e-9);
    pricer = make_pricer(cx, "hgx-h100", "generic", MS_BF16);
    product_s = ms_gemm_kernel_s(&pricer, shape);
    ASSERT_NEAR(ms_gemm_s(&pricer, shape), product_s, 0);
    ASSERT_NEAR(ms_quantized_gemm_s(&pricer, shape), product_s, 0);
}

static void larger_products_take_longer(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pricer pricer = make_pricer(cx, "hgx-h100", "generic", MS_BF16);
    for (double size = 128; size <= 16384; size *= 2) {
        double base_s = ms_gemm_s(&pricer, product(size, size, size, 2));
        assert_true(ms_gemm_s(&pricer, product(size, size, 2 * size, 2)) > base_s);
        assert_true(ms_gemm_s(&pricer, product(2 * size, size, size, 2)) >= base_s);
        ms_gemm_shape batch = product(size, size, size, 2);
        batch.batch = 3;
        /* fewer tiles than multiprocessors: equal up to rounding */
        assert_true(ms_gemm_s(&pricer, batch) >= base_s * (1.0 - 1e-12));
    }
}

/* Matrix products in training run below the rate of isolated kernels, more so on
 * devices whose power limit binds. */
static void sustained_rate_is_below_the_isolated_one(void **state)
{
    (void)state;
    static const char *const clusters[] = {"hgx-h100", "hgx-b200", "h100-96g-500w"};
    static const double peaks[] = {989e12, 2250e12, 989e12};
    ms_ctx *cx = test_cx();
    for (int i = 0; i < 3; i++) {
        ms_pricer pricer = make_pricer(cx, clusters[i], "generic", MS_BF16);
        const ms_gemm_profile *gemm = &pricer.profile->gemm[MS_BF16];
        assert_true(pricer.gemm_flop_per_s < 0.95 * peaks[i] * gemm->efficiency.value);
    }
}

/* The rate of products is the device's power limit (W) times FLOP per joule, up to the
 * rate of isolated products; without a known power limit a profile with FLOP per joule
 * is refused. */
static void products_follow_the_power_limit(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_cluster *cluster;
    ms_pricer pricer = make_pricer(cx, "hgx-h100", "generic", MS_FP8);
    const ms_gemm_profile *gemm = &pricer.profile->gemm[MS_FP8];
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &cluster), cx);
    static const double watts[] = {100.0, 500.0, 700.0, 1e6};
    for (int i = 0; i < 4; i++) {
        ms_cluster capped = *cluster;
        capped.device.tdp_w = watts[i];
        ASSERT_OK(
            ms_pricer_make(cx, &capped, pricer.profile, pricer.stack, MS_FP8, &pricer),
            cx);
        double isolated = 1979e12 * gemm->efficiency.value;
        ASSERT_NEAR(pricer.gemm_flop_per_s,
                    fmin(isolated, watts[i] * 2.0 * pricer.profile->flop_per_joule.value),
                    1e-12);
    }
    ms_cluster unknown = *cluster;
    unknown.device.tdp_w = (double)NAN;
    assert_int_equal(
        ms_pricer_make(cx, &unknown, pricer.profile, pricer.stack, MS_FP8, &pricer),
        MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "power limit"));
}

static void half_the_bits_gain_flop_per_joule(void **state)
{
    (void)state;
    ms_profile profile = {.flop_per_joule.value = 1e12, .half_bits_gain.value = 1.5};
    ASSERT_NEAR(ms_flop_per_joule(&profile, MS_FP16), 1e12, 1e-12);
    ASSERT_NEAR(ms_flop_per_joule(&profile, MS_FP8), 1.5e12, 1e-12);
    ASSERT_NEAR(ms_flop_per_joule(&profile, MS_FP4), 2.25e12, 1e-12);
    ASSERT_NEAR(ms_flop_per_joule(&profile, MS_FP32), 1e12 / 1.5, 1e-12);
    profile.half_bits_gain.value = 0.0; /* 0: as if absent from the profile */
    ASSERT_NEAR(ms_flop_per_joule(&profile, MS_FP8), 2e12, 1e-12);
    profile.flop_per_joule.value = 0.0;
    ASSERT_NEAR(ms_flop_per_joule(&profile, MS_FP8), 0.0, 0.0);
}

static ms_attention_shape causal(double tokens, double heads, double head_dim)
{
    double score_elements = heads * tokens * tokens;
    return (ms_attention_shape){.flop = 2.0 * score_elements * head_dim,
                                .key_tokens = tokens,
                                .head_dim = head_dim,
                                .score_elements = score_elements,
                                .traffic_bytes = 8.0 * heads * tokens * head_dim};
}

static void attention_approaches_its_rate_with_length(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pricer pricer = make_pricer(cx, "hgx-h100", "generic", MS_BF16);
    const double fastest = pricer.attention_forward_flop_per_s;
    double previous = 0.0;
    for (double tokens = 1024; tokens <= 262144; tokens *= 2) {
        ms_attention_shape shape = causal(tokens, 32, 128);
        double rate = shape.flop / ms_attention_s(&pricer, shape);
        assert_true(rate > previous && rate < fastest);
        previous = rate;
    }
    ASSERT_NEAR(previous, fastest, 0.01);
    /* A sequence of attention_half_sequence tokens reaches half of the full rate. */
    ms_attention_shape shape = causal(pricer.attention_half_sequence, 32, 128);
    ASSERT_NEAR(shape.flop / ms_attention_s(&pricer, shape), 0.5 * fastest, 1e-9);
}

/* Attention by cuDNN runs at the lower of two rates, whatever the compute type: the power
 * limit times the FLOP per joule of bf16 products, which is lower on B200 (1000 W), and
 * the kernel's own rate, which is lower on GB300 (1400 W). */
static void attention_takes_the_energy_of_products(void **state)
{
    (void)state;
    static const char *const clusters[] = {"hgx-b200", "gb300-nvl72"};
    static const ms_dtype types[] = {MS_BF16, MS_FP8};
    for (int i = 0; i < 4; i++) {
        ms_pricer pricer =
            make_pricer(test_cx(), clusters[i / 2], "megatron-bridge", types[i % 2]);
        const ms_attention_profile *cudnn =
            &pricer.profile->attention[MS_ATTENTION_CUDNN];
        double own = cudnn->forward_flop_per_s.value * cudnn->sustained_frac.value;
        double limit = pricer.device->tdp_w * ms_flop_per_joule(pricer.profile, MS_BF16);
        ASSERT_NEAR(pricer.attention_forward_flop_per_s, i < 2 ? limit : own, 1.0);
        assert_true(i < 2 ? limit < own : own < limit);
    }
}

/* Attention in fp32 is as much slower than in 16 bits as fp32's peak is lower, and so
 * below it. */
static void attention_in_wide_types_stays_below_their_peak(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pricer narrow = make_pricer(cx, "hgx-h100", "generic", MS_BF16);
    ms_pricer wide = make_pricer(cx, "hgx-h100", "generic", MS_FP32);
    const ms_attention_profile *fa3 = &narrow.profile->attention[MS_ATTENTION_FA3];
    ASSERT_NEAR(wide.attention_forward_flop_per_s,
                67.0 / 989.0 * fa3->forward_flop_per_s.value * fa3->sustained_frac.value,
                1e-12);
    assert_true(wide.attention_forward_flop_per_s < 67e12);
}

static void small_heads_are_slower_and_between_interpolated(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pricer pricer = make_pricer(cx, "hgx-h100", "generic", MS_BF16);
    double rates[4];
    static const double head_dims[] = {64, 96, 128, 256};
    for (int i = 0; i < 4; i++) {
        ms_attention_shape shape = causal(8192, 32, head_dims[i]);
        rates[i] = shape.flop / ms_attention_s(&pricer, shape);
    }
    assert_true(rates[0] < rates[1] && rates[1] < rates[2]);
    ASSERT_NEAR(rates[0] / rates[2], pricer.attention_small_head_frac, 1e-9);
    ASSERT_NEAR(rates[3], rates[2], 1e-9);
}

/* Attention with few blocks (query rows) runs at a lower rate, as measured for
 * isolated causal forward kernels of TRT-LLM and FlashAttention: see docs/formulas
 * 2.2. */
static void few_blocks_take_longer(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pricer pricer = make_pricer(cx, "hgx-h100", "generic", MS_BF16);
    ms_attention_shape shape = causal(4096, 4, 128);
    double many_s = ms_attention_s(&pricer, shape);
    shape.query_rows = 128.0 * 132.0; /* one block of 128 rows for each of 132 SMs */
    ASSERT_NEAR(ms_attention_s(&pricer, shape), many_s * pow(2.0, 0.25), 1e-12);
}

static void narrow_values_are_padded_by_kernels_of_one_head_dim(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    /* stacks that use FlashAttention 3 and FlashAttention 2 */
    static const char *const stacks[] = {"generic", "meshsim"};
    for (int i = 0; i < 2; i++) {
        ms_pricer pricer = make_pricer(cx, "hgx-h100", stacks[i], MS_BF16);
        ms_attention_shape shape = causal(4096, 4, 128);
        double even_s = ms_attention_s(&pricer, shape);
        shape.head_dim = 192;
        shape.value_dim = 128;
        double padded = 384.0 / 320.0;
        ASSERT_NEAR(ms_attention_s(&pricer, shape), even_s * (i == 0 ? 1.0 : padded),
                    1e-12);
        shape.backward = true;
        double narrow_s = ms_attention_s(&pricer, shape);
        shape.value_dim = 192;
        ASSERT_NEAR(narrow_s, ms_attention_s(&pricer, shape) * padded, 1e-12);
    }
}

/* Unfused attention runs two matrix products forward and four backward for each head, and
 * kernels between them read and write the scores in memory. */
static void unfused_attention_moves_its_scores(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pricer pricer = make_pricer(cx, "hgx-a100-80g", "megatron-2021", MS_BF16);
    ms_profile profile = *pricer.profile;
    profile.batched_products_frac.value = 0.5;
    pricer.profile = &profile;
    assert_false(pricer.attention_fused);
    ms_attention_shape shape = causal(2048, 32, 96);
    shape.query_rows = 32 * 2048;
    shape.batch = 32;
    const double deep_s =
        ms_gemm_kernel_s(&pricer, (ms_gemm_shape){32, 2048, 2048, 96, 2, 2});
    const double flat_s =
        ms_gemm_kernel_s(&pricer, (ms_gemm_shape){32, 2048, 96, 2048, 2, 2});
    ASSERT_NEAR(ms_attention_s(&pricer, shape), (deep_s + flat_s) / 0.5, 1e-12);
    shape.score_bytes = 8;
    const double passes_s = 8.0 * shape.score_elements / (0.8 * 2.039e12);
    ASSERT_NEAR(ms_attention_s(&pricer, shape), (deep_s + flat_s) / 0.5 + passes_s,
                1e-12);
    shape.backward = true;
    ASSERT_NEAR(ms_attention_s(&pricer, shape), (deep_s + 3 * flat_s) / 0.5 + passes_s,
                1e-12);
    profile.batched_products_frac.value = 0.0; /* 0: as if absent from the profile */
    ASSERT_NEAR(ms_attention_s(&pricer, shape), deep_s + 3 * flat_s + passes_s, 1e-12);
}

/* Recomputing the attention of a layer of the 22B model on 8 A100 with 4 sequences
 * takes 1.3 ms: Korthikanti et al. 2022 (arXiv 2205.05198) table 4, quoted from
 * memory. It is priced at 1.44 ms since A100's products are slower in training. */
static void recomputed_attention_takes_what_was_measured(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pricer pricer = make_pricer(cx, "hgx-a100-80g", "megatron-2022", MS_FP16);
    const double heads = 4 * 64 / 8;
    ms_attention_shape shape = causal(2048, heads, 96);
    shape.query_rows = heads * 2048;
    shape.batch = heads;
    shape.score_bytes = 8; /* bytes a score: causal softmax 3, dropout 5 */
    ASSERT_NEAR(ms_attention_s(&pricer, shape), 1.3e-3, 0.11);
}

static void stack_falls_to_the_next_kernel_that_the_device_has(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pricer pricer =
        /* the stack asks for FlashAttention 3, which an A100 lacks */
        make_pricer(cx, "hgx-a100-80g", "generic", MS_BF16);
    assert_true(pricer.attention_fused);
    const ms_attention_profile *fa2 = &pricer.profile->attention[MS_ATTENTION_FA2];
    ASSERT_NEAR(pricer.attention_forward_flop_per_s,
                fa2->forward_flop_per_s.value * fa2->sustained_frac.value, 1e-12);
}

static ms_status make_with(ms_ctx *cx, const char *network, ms_dtype compute)
{
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
    ASSERT_OK(ms_cluster_load(cx, "hgx-a100-80g", &cluster), cx);
    ASSERT_OK(ms_profile_load(cx, "a100-sxm", &profile), cx);
    ASSERT_OK(ms_stack_load(cx, "generic", &stack), cx);
    ms_cluster changed = *cluster;
    changed.network = network;
    ms_pricer pricer;
    return ms_pricer_make(cx, &changed, profile, stack, compute, &pricer);
}

static void missing_coefficients_are_errors_with_names(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_INT(make_with(cx, "infiniband", MS_FP8), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "fp8"));
    assert_non_null(strstr(test_messages(cx), "whose peak it states: fp64, "));
    cx = test_cx();
    ASSERT_INT(make_with(cx, "infiniband", MS_FP64), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "gemm/fp64"));
    cx = test_cx();
    ASSERT_INT(make_with(cx, "infinibund", MS_BF16), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "did you mean \"infiniband\"?"));
}

static void the_longer_of_host_and_device_counts(void **state)
{
    (void)state;
    ASSERT_NEAR(ms_with_host_s(1.0, 0.0), 1.0, 0);
    ASSERT_NEAR(ms_with_host_s(0.0, 2.0), 2.0, 0);
    ASSERT_NEAR(ms_with_host_s(3e-3, 5e-3), 5e-3, 0);
    ASSERT_NEAR(ms_with_host_s(5e-3, 3e-3), 5e-3, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(isolated_products_match_published_rates),
        cmocka_unit_test(law_of_products_by_hand),
        cmocka_unit_test(sums_of_32_bits_are_not_all_hidden),
        cmocka_unit_test(operands_of_8_bits_are_made),
        cmocka_unit_test(larger_products_take_longer),
        cmocka_unit_test(sustained_rate_is_below_the_isolated_one),
        cmocka_unit_test(products_follow_the_power_limit),
        cmocka_unit_test(half_the_bits_gain_flop_per_joule),
        cmocka_unit_test(attention_approaches_its_rate_with_length),
        cmocka_unit_test(attention_takes_the_energy_of_products),
        cmocka_unit_test(attention_in_wide_types_stays_below_their_peak),
        cmocka_unit_test(small_heads_are_slower_and_between_interpolated),
        cmocka_unit_test(few_blocks_take_longer),
        cmocka_unit_test(narrow_values_are_padded_by_kernels_of_one_head_dim),
        cmocka_unit_test(unfused_attention_moves_its_scores),
        cmocka_unit_test(recomputed_attention_takes_what_was_measured),
        cmocka_unit_test(stack_falls_to_the_next_kernel_that_the_device_has),
        cmocka_unit_test(missing_coefficients_are_errors_with_names),
        cmocka_unit_test(the_longer_of_host_and_device_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
