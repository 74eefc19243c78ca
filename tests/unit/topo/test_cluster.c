#include "topo/cluster.h"

#include "tests/test.h"

static const char good_text[] =
    "{\"name\": \"box\", \"source\": \"test\", \"network\": \"infiniband\",\n"
    " \"device\": {\"name\": \"G\", \"profile\": \"p\", \"memory\": \"80 GiB\", \"hbm\": \"3 TB/s\",\n"
    "  \"peak\": {\"bf16\": \"1 PFLOP/s\", \"fp8\": null}, \"sms\": 100},\n"
    " \"gpus_per_node\": 8,\n"
    " \"levels\": [{\"name\": \"nvlink\", \"gpus_per_domain\": 8, \"bandwidth\": \"450 GB/s\", \"latency\": \"0 us\"},\n"
    "  {\"name\": \"net\", \"bandwidth\": \"400 Gb/s\", \"latency\": \"10 us\", \"nics_per_gpu\": 1}]}\n";

static ms_status read_text(ms_ctx *cx, const char *text, ms_cluster *out)
{
    ms_jdoc *doc;
    ms_jval root;
    MS_TRY(ms_json_parse(cx, "box.json", text, strlen(text), &doc, &root));
    ms_status status = ms_cluster_read(cx, root, out);
    ms_json_close(doc);
    return status;
}

/* The sound cluster file with one piece of text replaced. */
static const char *changed(ms_ctx *cx, const char *old, const char *new)
{
    const char *at = strstr(good_text, old);
    assert_non_null(at);
    return ms_arena_printf(cx->arena, "%.*s%s%s", (int)(at - good_text), good_text, new,
                           at + strlen(old));
}

static void expect_error(const char *old, const char *new, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_cluster cluster;
    ASSERT_INT(read_text(cx, changed(cx, old, new), &cluster), MS_EINPUT);
    const char *messages = test_messages(cx);
    if (strstr(messages, message) == NULL)
        fail_msg("expected \"%s\" in:\n%s", message, messages);
}

static void good_cluster_is_read_with_units(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_cluster cluster;
    ASSERT_OK(read_text(cx, good_text, &cluster), cx);
    ASSERT_NEAR(cluster.device.memory_bytes, 80.0 * 1073741824.0, 0);
    ASSERT_NEAR(cluster.levels[1].bandwidth_bytes_per_s, 50e9, 1e-15);
    ASSERT_NEAR(cluster.levels[1].latency_s, 1e-5, 1e-15);
    ASSERT_NEAR(cluster.device.peak_flop_per_s[MS_BF16], 1e15, 1e-15);
    assert_true(isnan(cluster.device.peak_flop_per_s[MS_FP8]));
    assert_true(isnan(cluster.device.peak_flop_per_s[MS_FP64]));
    assert_true(isnan(cluster.usd_per_gpu_hour));
    ASSERT_NEAR(cluster.levels[0].oversubscription, 1.0, 0);
    ASSERT_INT(cluster.levels[1].gpus_per_domain, 0);
    ASSERT_INT(cluster.max_gpus, 0);
}

static void unknown_key_names_the_nearest(void **state)
{
    (void)state;
    expect_error("\"gpus_per_node\"", "\"gpus_per_nod\"", "gpus_per_node");
    expect_error("\"hbm\": \"3 TB/s\"", "\"hbm\": \"3 TB/s\", \"colour\": 1", "colour");
}

static void bare_number_where_a_unit_is_needed_is_refused(void **state)
{
    (void)state;
    expect_error("\"450 GB/s\"", "450", "450");
    expect_error("\"80 GiB\"", "80", "/device/memory");
}

static void wrong_unit_wrong_type_and_negative_are_refused(void **state)
{
    (void)state;
    expect_error("\"450 GB/s\"", "\"450 GiB\"", "450 GiB");
    expect_error("\"450 GB/s\"", "\"-450 GB/s\"", "-450");
    expect_error("\"sms\": 100", "\"sms\": \"100\"", "sms");
    expect_error("\"sms\": 100", "\"sms\": -100", "-100");
    expect_error("\"gpus_per_node\": 8", "\"gpus_per_node\": 8.5", "8.5");
}

static void huge_and_zero_figures_are_refused(void **state)
{
    (void)state;
    expect_error("\"gpus_per_domain\": 8", "\"gpus_per_domain\": 1e300",
                 "gpus_per_domain");
    expect_error("\"450 GB/s\"", "\"1e999 GB/s\"", "1e999");
    expect_error("\"450 GB/s\"", "\"0 GB/s\"", "must be positive");
    expect_error("\"1 PFLOP/s\"", "\"0 PFLOP/s\"", "must be positive");
    expect_error("\"80 GiB\"", "\"0 GiB\"", "must be positive");
}

static void levels_must_nest_and_end_with_everything(void **state)
{
    (void)state;
    expect_error("\"name\": \"net\",", "\"name\": \"net\", \"gpus_per_domain\": 256,",
                 "outermost");
    expect_error("\"gpus_per_domain\": 8, ", "", "only the outermost may leave it out");
    expect_error(
        "{\"name\": \"net\"",
        "{\"name\": \"leaf\", \"gpus_per_domain\": 12, \"bandwidth\": \"1 GB/s\", \"latency\": \"0 s\"}, "
        "{\"name\": \"net\"",
        "multiple of the 8");
}

static void missing_device_points_at_the_root(void **state)
{
    (void)state;
    expect_error("\"device\"", "\"_device\"", "device");
}

static void every_shipped_cluster_is_read_and_names_a_network(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *names;
    int num_names;
    ASSERT_OK(ms_cluster_names(cx, &names, &num_names), cx);
    assert_true(num_names >= 9);
    for (int i = 0; i < num_names; i++) {
        const ms_cluster *cluster;
        ASSERT_OK(ms_cluster_load(cx, names[i], &cluster), cx);
        ASSERT_TEXT(cluster->name, names[i]);
        bool is_cpu = strcmp(names[i], "cpu") == 0;
        const double *peak = cluster->device.peak_flop_per_s;
        /* V100 has no bf16 */
        double rate = isnan(peak[MS_BF16]) ? peak[MS_FP16] : peak[MS_BF16];
        assert_true(rate > (is_cpu ? 1e10 : 5e13));
    }
}

static void aliases_are_names(void **state)
{
    (void)state;
    static const char *const pairs[] = {
        "h100",   "hgx-h100",    "a100", "hgx-a100-80g",
        "gb200",  "gb200-nvl72", "4090", "workstation-rtx4090",
        "mi300x", "mi300x",      "v5p",  "tpu-v5p"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i += 2) {
        ms_ctx *cx = test_cx();
        const ms_cluster *cluster;
        ASSERT_OK(ms_cluster_load(cx, pairs[i], &cluster), cx);
        ASSERT_TEXT(cluster->name, pairs[i + 1]);
    }
}

/* Numbers from NVIDIA's H100 SXM datasheet and DGX SuperPOD H100: 989 TFLOP/s bf16,
 * 3.35 TB/s of HBM, 900 GB/s of NVLink in both directions together. */
static void h100_has_its_datasheet_figures(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_cluster *cluster;
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &cluster), cx);
    ASSERT_NEAR(cluster->device.peak_flop_per_s[MS_BF16], 989e12, 1e-12);
    ASSERT_NEAR(cluster->device.hbm_bytes_per_s, 3.35e12, 1e-12);
    ASSERT_NEAR(cluster->levels[0].bandwidth_bytes_per_s, 450e9, 1e-12);
    ASSERT_NEAR(cluster->levels[1].bandwidth_bytes_per_s, 50e9, 1e-12);
    ASSERT_INT(cluster->levels[1].gpus_per_domain, 256);
    assert_true(cluster->device.memory_bytes < 80.0 * 1073741824.0);
}

static void unknown_cluster_suggests_the_nearest(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_cluster *cluster;
    ASSERT_INT(ms_cluster_load(cx, "hgx-h10", &cluster), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "hgx-h100"));
}

static void page_shows_device_levels_and_source(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_cluster cluster;
    ASSERT_OK(read_text(cx, good_text, &cluster), cx);
    FILE *file = tmpfile();
    ms_cluster_print(file, &cluster);
    const char *page = test_read_back(cx->arena, file);
    static const char *const parts[] = {"cluster box", "80.0 GiB", "nvlink",
                                        "450 GB/s",    "all GPUs", "+10.0 us",
                                        "source: test"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(page, parts[i]) == NULL)
            fail_msg("no \"%s\" in:\n%s", parts[i], page);
    assert_null(strstr(page, "nan"));
}

static void json_carries_units_in_keys_and_null_for_unknown(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_cluster cluster;
    ASSERT_OK(read_text(cx, good_text, &cluster), cx);
    FILE *file = tmpfile();
    ms_jout out = ms_jout_open(file);
    ms_cluster_write_json(&out, &cluster);
    ms_jout_close(&out);
    const char *text = test_read_back(cx->arena, file);
    ms_jdoc *doc;
    ms_jval root, device, value;
    ASSERT_OK(ms_json_parse(cx, "out", text, strlen(text), &doc, &root), cx);
    assert_true(ms_json_member(cx, root, "device", &device));
    assert_true(ms_json_member(cx, device, "tdp_w", &value) && ms_json_is_null(value));
    double bytes;
    assert_true(ms_json_member(cx, device, "memory_bytes", &value));
    ASSERT_OK(ms_json_number(cx, value, 0, 1e15, &bytes), cx);
    ASSERT_NEAR(bytes, 80.0 * 1073741824.0, 0);
    assert_non_null(strstr(text, "\"meshsim.cluster/1\""));
    ms_json_close(doc);
}

static void element_sizes_match_their_names(void **state)
{
    (void)state;
    static const double bytes[] = {8, 4, 4, 2, 2, 1, 0.5};
    for (int i = 0; i < MS_NUM_DTYPES; i++)
        ASSERT_NEAR(ms_dtype_bytes((ms_dtype)i), bytes[i], 0);
    ASSERT_NEAR(ms_stored_bytes(MS_FP8), 2, 0);
    ASSERT_NEAR(ms_stored_bytes(MS_FP32), 4, 0);
    ASSERT_TEXT(ms_dtype_names[MS_FP8], "fp8");
    assert_null(ms_dtype_names[MS_NUM_DTYPES]);
}

static void nodes_that_do_not_fill_a_domain_are_refused(void **state)
{
    (void)state;
    expect_error("\"gpus_per_node\": 8", "\"gpus_per_node\": 7",
                 "gpus_per_node is 7, must divide the 8 GPUs of a domain of level "
                 "\"nvlink\" (at /gpus_per_node)");
    ms_ctx *cx = test_cx();
    ms_cluster cluster;
    const char *text = changed(cx, "\"gpus_per_node\": 8", "\"gpus_per_node\": 4");
    ASSERT_OK(read_text(cx, text, &cluster), cx);
}

static void figures_beyond_any_machine_are_refused(void **state)
{
    (void)state;
    expect_error("10 us", "1e300 s",
                 "\"latency\" is 1e+300 s, must be at most 1 s (at /levels/1/latency)");
    expect_error("10 us", "1.1 s", "/levels/1/latency");
    expect_error("400 Gb/s", "1.1 PB/s", "/levels/1/bandwidth");
    expect_error("3 TB/s", "1.1 PB/s", "/device/hbm");
}

static const char mesh_level[] = "\"latency\": \"0 us\", \"topology\": \"mesh\"}";
static const char torus_level[] =
    "\"latency\": \"0 us\", \"topology\": \"torus\", \"dims\": [2, 4], \"wrap\": 4}";

static void topologies_and_rails_are_read(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_cluster cluster;
    ASSERT_OK(read_text(cx, good_text, &cluster), cx);
    ASSERT_INT(cluster.levels[0].topology, MS_SWITCH);
    ASSERT_INT(cluster.levels[1].rails, 0);
    const char *text = changed(cx, "\"latency\": \"0 us\"}", mesh_level);
    ASSERT_OK(read_text(cx, text, &cluster), cx);
    ASSERT_INT(cluster.levels[0].topology, MS_FULL_MESH);
    text = changed(cx, "\"latency\": \"0 us\"}", torus_level);
    ASSERT_OK(read_text(cx, text, &cluster), cx);
    ASSERT_INT(cluster.levels[0].topology, MS_TORUS);
    ASSERT_INT(cluster.levels[0].num_dims, 2);
    ASSERT_INT(cluster.levels[0].dims[1], 4);
    ASSERT_INT(cluster.levels[0].wrap, 4);
    text = changed(cx, "\"nics_per_gpu\": 1", "\"nics_per_gpu\": 1, \"rails\": 8");
    ASSERT_OK(read_text(cx, text, &cluster), cx);
    ASSERT_INT(cluster.levels[1].rails, 8);
    text = changed(cx, "\"nics_per_gpu\": 1",
                   "\"rails\": null, \"dims\": null, \"topology\": \"switch\"");
    ASSERT_OK(read_text(cx, text, &cluster), cx);
}

static void topologies_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *inner, *message;
    } rows[] = {
        {"\"topology\": \"tree\"", "tree"},
        {"\"topology\": \"torus\"", "a torus needs dims, such as [4, 4, 4]"},
        {"\"topology\": \"torus\", \"dims\": [2, 2]", "dims hold 4 GPUs"},
        {"\"topology\": \"torus\", \"dims\": [2, 2, 2, 1]", "1 to 3 sides"},
        {"\"topology\": \"torus\", \"dims\": []", "1 to 3 sides"},
        {"\"topology\": \"torus\", \"dims\": 8", "1 to 3 sides"},
        {"\"topology\": \"torus\", \"dims\": [0, 8]", "/levels/0/dims/0"},
        {"\"topology\": \"torus\", \"dims\": [8], \"wrap\": 0", "/levels/0/wrap"},
        {"\"dims\": [8]", "dims and wrap are for a torus only, not for a switch"},
        {"\"topology\": \"mesh\", \"wrap\": 4", "not for a mesh"},
        {"\"rails\": 8", "outside the innermost one"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_ctx *cx = test_cx();
        expect_error(
            "\"latency\": \"0 us\"}",
            ms_arena_printf(cx->arena, "\"latency\": \"0 us\", %s}", rows[i].inner),
            rows[i].message);
    }
    expect_error("\"nics_per_gpu\": 1", "\"rails\": 3", "must divide the 8 GPUs");
    expect_error("\"nics_per_gpu\": 1", "\"topology\": \"mesh\"",
                 "which only the innermost level can be");
    expect_error(
        "\"gpus_per_domain\": 8, \"bandwidth\": \"450 GB/s\", \"latency\": \"0 us\"",
        "\"gpus_per_domain\": 2000, \"bandwidth\": \"450 GB/s\", \"latency\": \"0 us\", "
        "\"topology\": \"torus\", \"dims\": [100, 20]",
        "add up to 120, at most 112");
    expect_error(
        "\"gpus_per_domain\": 8, \"bandwidth\": \"450 GB/s\", \"latency\": \"0 us\"",
        "\"gpus_per_domain\": 72, \"bandwidth\": \"450 GB/s\", \"latency\": \"0 us\", "
        "\"topology\": \"mesh\"",
        "a mesh has 72 GPUs");
}

static void topologies_and_rails_are_shown(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_cluster cluster;
    const char *text = changed(cx, "\"latency\": \"0 us\"}", torus_level);
    ASSERT_OK(read_text(cx, text, &cluster), cx);
    cluster.levels[1].rails = 8;
    FILE *file = tmpfile();
    ms_cluster_print(file, &cluster);
    const char *page = test_read_back(cx->arena, file);
    assert_non_null(strstr(page, "torus 2 x 4\n"));
    assert_non_null(strstr(page, "1 NIC a GPU, 8 rails\n"));
    file = tmpfile();
    ms_jout out = ms_jout_open(file);
    ms_cluster_write_json(&out, &cluster);
    ms_jout_close(&out);
    const char *json = test_read_back(cx->arena, file);
    static const char *const parts[] = {
        "\"topology\": \"torus\"",  "\"dims\": [2, 4]", "\"wrap\": 4", "\"rails\": 8",
        "\"topology\": \"switch\"", "\"rails\": null"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(json, parts[i]) == NULL)
            fail_msg("no %s in:\n%s", parts[i], json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_cluster_is_read_with_units),
        cmocka_unit_test(unknown_key_names_the_nearest),
        cmocka_unit_test(bare_number_where_a_unit_is_needed_is_refused),
        cmocka_unit_test(wrong_unit_wrong_type_and_negative_are_refused),
        cmocka_unit_test(huge_and_zero_figures_are_refused),
        cmocka_unit_test(levels_must_nest_and_end_with_everything),
        cmocka_unit_test(missing_device_points_at_the_root),
        cmocka_unit_test(every_shipped_cluster_is_read_and_names_a_network),
        cmocka_unit_test(aliases_are_names),
        cmocka_unit_test(h100_has_its_datasheet_figures),
        cmocka_unit_test(unknown_cluster_suggests_the_nearest),
        cmocka_unit_test(page_shows_device_levels_and_source),
        cmocka_unit_test(json_carries_units_in_keys_and_null_for_unknown),
        cmocka_unit_test(element_sizes_match_their_names),
        cmocka_unit_test(nodes_that_do_not_fill_a_domain_are_refused),
        cmocka_unit_test(figures_beyond_any_machine_are_refused),
        cmocka_unit_test(topologies_and_rails_are_read),
        cmocka_unit_test(topologies_that_cannot_be_are_refused),
        cmocka_unit_test(topologies_and_rails_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
