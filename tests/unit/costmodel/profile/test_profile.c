#include "costmodel/profile/profile.h"

#include "base/paths.h"
#include "tests/test.h"

static const char *profile_text(ms_ctx *cx)
{
    const char *path = ms_config_file(cx, "profiles", "h100-sxm");
    assert_non_null(path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    return test_read_back(cx->arena, file);
}

static ms_status read_text(ms_ctx *cx, const char *text, ms_profile *out)
{
    ms_jdoc *doc;
    ms_jval root;
    MS_TRY(ms_json_parse(cx, "p.json", text, strlen(text), &doc, &root));
    ms_status status = ms_profile_read(cx, root, out);
    ms_json_close(doc);
    return status;
}

/* The shipped H100 profile with the text `old` replaced by `new` is refused with the
 * message. */
static void expect_error(const char *old, const char *new, const char *message)
{
    ms_ctx *cx = test_cx();
    const char *text = profile_text(cx);
    const char *at = strstr(text, old);
    if (at == NULL)
        fail_msg("no \"%s\" in the profile", old);
    text = ms_arena_printf(cx->arena, "%.*s%s%s", (int)(at - text), text, new,
                           at + strlen(old));
    ms_profile profile;
    ASSERT_INT(read_text(cx, text, &profile), MS_EINPUT);
    const char *messages = test_messages(cx);
    if (strstr(messages, message) == NULL)
        fail_msg("expected \"%s\" in:\n%s", message, messages);
}

static void check_coefficient(const ms_coefficient *coefficient)
{
    if (isnan(coefficient->value))
        return;
    assert_true(coefficient->value >= 0.0);
    assert_true(coefficient->from <= MS_ASSUMED);
    assert_non_null(coefficient->source);
    assert_true(strlen(coefficient->source) >= 5);
}

static void every_shipped_profile_states_provenance(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *names;
    int num_names;
    ASSERT_OK(ms_config_names(cx, "profiles", &names, &num_names), cx);
    assert_true(num_names >= 7);
    for (int i = 0; i < num_names; i++) {
        const ms_profile *profile;
        ASSERT_OK(ms_profile_load(cx, names[i], &profile), cx);
        ASSERT_TEXT(profile->name, names[i]);
        check_coefficient(&profile->hbm_frac);
        /* V100 has no bf16 */
        bool has_bf16 = !isnan(profile->gemm[MS_BF16].efficiency.value);
        const ms_gemm_profile *gemm = &profile->gemm[has_bf16 ? MS_BF16 : MS_FP16];
        check_coefficient(&gemm->sustained_frac);
        check_coefficient(&profile->link_step_s);
        check_coefficient(&profile->context_bytes);
        assert_true(gemm->efficiency.value > 0.0);
        for (int j = 0; j < profile->num_networks; j++)
            check_coefficient(&profile->networks[j].rank_step_s);
    }
}

static void every_cluster_has_its_profile_and_network(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *names;
    int num_names;
    ASSERT_OK(ms_cluster_names(cx, &names, &num_names), cx);
    for (int i = 0; i < num_names; i++) {
        const ms_cluster *cluster;
        const ms_profile *profile;
        ASSERT_OK(ms_cluster_load(cx, names[i], &cluster), cx);
        ASSERT_OK(ms_profile_load(cx, cluster->device.profile, &profile), cx);
        if (cluster->num_levels > 1)
            assert_non_null(ms_profile_network(profile, cluster->network));
    }
}

static void quantities_become_base_units(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_profile *profile;
    ASSERT_OK(ms_profile_load(cx, "h100-sxm", &profile), cx);
    ASSERT_NEAR(profile->link_base_s.value, 4.57e-6, 1e-12);
    ASSERT_NEAR(profile->nvls_bytes_per_s.value, 452e9, 1e-12);
    ASSERT_NEAR(profile->attention[MS_ATTENTION_FA3].backward_flop_per_s.value, 621.9e12,
                1e-12);
    ASSERT_INT(profile->gemm[MS_BF16].efficiency.from, MS_FITTED);
    assert_true(isnan(profile->gemm[MS_FP4].efficiency.value));
    assert_null(ms_profile_network(profile, "carrier pigeon"));
}

static void a100_has_no_fa3_and_no_in_switch_reduction(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_profile *profile;
    ASSERT_OK(ms_profile_load(cx, "a100-sxm", &profile), cx);
    assert_true(isnan(profile->attention[MS_ATTENTION_FA3].forward_flop_per_s.value));
    assert_true(isnan(profile->nvls_bytes_per_s.value));
}

static void coefficients_without_provenance_are_refused(void **state)
{
    (void)state;
    expect_error("\"from\": \"measured\",", "", "from");
    expect_error("\"from\": \"measured\"", "\"from\": \"guessed\"", "guessed");
    expect_error("\"hbm_frac\": {", "\"hbm_frac\": 0.8, \"_note\": {", "hbm_frac");
    expect_error("\"value\": 0.8,", "", "value");
}

static void bad_values_are_refused(void **state)
{
    (void)state;
    expect_error("\"value\": \"7.2 us\"", "\"value\": 7.2", "7.2");
    expect_error("\"value\": \"7.2 us\"", "\"value\": \"7.2\"", "7.2");
    expect_error("\"value\": \"7.2 us\"", "\"value\": \"7200 s\"", "p2p_base");
    expect_error("\"value\": \"7.2 us\"", "\"value\": null", "p2p_base");
    expect_error("\"value\": 0.8,", "\"value\": -0.8,", "-0.8");
    expect_error("\"value\": 0.8,", "\"value\": 1e30,", "1e+30");
    expect_error("\"value\": 128", "\"value\": \"128\"", "must be a number");
}

static void unknown_keys_name_the_nearest(void **state)
{
    (void)state;
    expect_error("\"hbm_frac\"", "\"hbm_fraq\"", "hbm_frac");
    expect_error("\"fa3\"", "\"fa4\"", "fa4");
    expect_error("\"k_half\"", "\"k_halt\"", "k_half");
    expect_error("\"networks\": {", "\"networks\": {\"efa\": 3, ", "efa");
    expect_error("\"triton\": {", "\"unfused\": {", "unfused");
}

static void half_stated_in_switch_reduction_is_refused(void **state)
{
    (void)state;
    expect_error("\"value\": \"452 GB/s\"", "\"value\": null", "all null or none");
}

static void shares_above_the_listed_rate_are_refused(void **state)
{
    (void)state;
    expect_error("\"hbm_frac\": {\"value\": 0.8", "\"hbm_frac\": {\"value\": 1.1",
                 "\"hbm_frac\" is 1.1, a rate above the listed one (at /hbm_frac/value)");
    expect_error("\"efficiency\": {\"value\": 0.762", "\"efficiency\": {\"value\": 1.01",
                 "\"efficiency\" is 1.01, a rate above the listed one (at /gemm/fp8/");
    expect_error("\"small_head\": {\"value\": 0.726", "\"small_head\": {\"value\": 2",
                 "/attention/fa3/small_head/value");
    expect_error("\"frac\": {\"value\": 0.87", "\"frac\": {\"value\": 1.2",
                 "/all_to_all/frac/value");
    expect_error("\"sustained\": {\"value\": 0.894", "\"sustained\": {\"value\": 1.2",
                 "1.2");
    expect_error("\"bandwidth_frac\": {\"value\": 0.93",
                 "\"bandwidth_frac\": {\"value\": 1.3", "1.3");
}

/* The profile of H100 is refused for the cluster with another rate. */
static void expect_refused_for(const ms_cluster *cluster, const char *message)
{
    ms_ctx *cx = test_cx();
    const ms_profile *profile;
    ASSERT_INT(ms_profile_load_for(cx, "h100-sxm", cluster, &profile), MS_EINPUT);
    const char *messages = test_messages(cx);
    if (strstr(messages, message) == NULL || strstr(messages, "hgx-h100.json") == NULL)
        fail_msg("expected \"%s\" and the cluster's file in:\n%s", message, messages);
}

static void rates_above_those_of_the_cluster_are_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_cluster *shipped;
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &shipped), cx);
    ms_cluster cluster = *shipped;
    cluster.device.peak_flop_per_s[MS_BF16] = 500e12;
    expect_refused_for(&cluster,
                       "\"forward\" is 513 TFLOP/s, above the dense bf16 peak of "
                       "device \"H100 SXM5 80GB\", 500 TFLOP/s (at "
                       "/attention/cudnn/forward)");
    cluster = *shipped;
    cluster.levels[0].bandwidth_bytes_per_s = 200e9;
    expect_refused_for(&cluster, "\"bandwidth\" is 452 GB/s, above twice the innermost "
                                 "links' rate");
}

static void the_type_of_attention_is_one_with_a_peak(void **state)
{
    (void)state;
    ms_device device = {.peak_flop_per_s = {[MS_FP32] = 1e13, [MS_FP16] = 1e14}};
    ms_sweep sweep = {.dtype = MS_FP64};
    ms_profile profile = {0};
    ASSERT_INT(ms_profile_attention_type(&profile, &device), MS_FP16);
    device.peak_flop_per_s[MS_FP16] = NAN;
    ASSERT_INT(ms_profile_attention_type(&profile, &device), MS_FP32);
    profile.measured = &sweep;
    ASSERT_INT(ms_profile_attention_type(&profile, &device), MS_FP64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shipped_profile_states_provenance),
        cmocka_unit_test(every_cluster_has_its_profile_and_network),
        cmocka_unit_test(quantities_become_base_units),
        cmocka_unit_test(a100_has_no_fa3_and_no_in_switch_reduction),
        cmocka_unit_test(coefficients_without_provenance_are_refused),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(unknown_keys_name_the_nearest),
        cmocka_unit_test(half_stated_in_switch_reduction_is_refused),
        cmocka_unit_test(shares_above_the_listed_rate_are_refused),
        cmocka_unit_test(rates_above_those_of_the_cluster_are_refused),
        cmocka_unit_test(the_type_of_attention_is_one_with_a_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
