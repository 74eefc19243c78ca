#include "topo/device_kinds.h"

#include "tests/test.h"
#include "topo/allocation.h"

#define MIXED MS_SOURCE_DIR "/tests/data/mixed_cluster.json"
#define SLOW  MS_SOURCE_DIR "/tests/data/mixed_small_memory.json"

static const ms_cluster *load(const char *path)
{
    const ms_cluster *cluster;
    ms_ctx *cx = test_cx();
    ASSERT_OK(ms_cluster_load(cx, path, &cluster), cx);
    return cluster;
}

static void a_mixed_cluster_has_what_all_groups_have(void **state)
{
    (void)state;
    const ms_cluster *c = load(MIXED);
    ASSERT_INT(c->num_kinds, 2);
    ASSERT_INT(c->max_gpus, 16);
    ASSERT_INT(c->num_levels, 2);
    ASSERT_NEAR(c->levels[0].bandwidth_bytes_per_s, 300e9, 0); /* A100's NVLink */
    ASSERT_NEAR(c->levels[1].bandwidth_bytes_per_s, 25e9, 0);
    ASSERT_NEAR(c->levels[1].latency_s, 12e-6, 1e-18);
    ASSERT_TEXT(ms_kind_device(c, 1)->name, "A100 SXM4 80GB");
}

static void ranks_take_groups_in_order_or_reversed(void **state)
{
    (void)state;
    const ms_cluster *c = load(MIXED);
    ASSERT_INT(ms_kinds_of_ranks(c, false, 0, 8), 1);
    ASSERT_INT(ms_kinds_of_ranks(c, false, 8, 8), 2);
    ASSERT_INT(ms_kinds_of_ranks(c, false, 7, 2), 3);
    ASSERT_INT(ms_kinds_of_ranks(c, true, 0, 8), 2);
    ASSERT_INT(ms_kinds_of_ranks(c, true, 0, 9), 3);
    long counts[MS_MAX_DEVICE_KINDS];
    ms_count_kinds(c, true, 12, counts);
    ASSERT_INT(counts[0], 4);
    ASSERT_INT(counts[1], 8);
}

/* Rank 4 is in the second node if each node of 8 GPUs holds 4 ranks. */
static void ranks_per_domain_are_placed_by_nodes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_cluster *job;
    ASSERT_OK(ms_cluster_for_job(cx, load(MIXED), 8, 4, &job), cx);
    ASSERT_INT(ms_kinds_of_ranks(job, false, 0, 4), 1);
    ASSERT_INT(ms_kinds_of_ranks(job, false, 4, 4), 2);
    ASSERT_INT(job->kinds[1].like->levels[0].gpus_per_domain, 4);
}

static void ranks_of_both_groups_see_the_slower_link_and_less_memory(void **state)
{
    (void)state;
    const ms_cluster *c = load(SLOW);
    ms_arena *arena = test_cx()->arena;
    ASSERT_INT(c->num_kinds, 3); /* both groups as listed, and the slow node */
    const ms_cluster *both = ms_cluster_of_kinds(arena, c, 5, 0);
    ASSERT_NEAR(both->device.memory_bytes, ms_kind_device(c, 1)->memory_bytes, 0);
    ASSERT_NEAR(both->levels[1].bandwidth_bytes_per_s, 12.5e9, 0);
    ASSERT_NEAR(both->device.compute_frac, 1, 0);
    const ms_cluster *slow = ms_cluster_of_kinds(arena, c, 4, 2);
    ASSERT_NEAR(slow->device.compute_frac, 0.75, 0);
    ASSERT_INT(slow->num_kinds, 0);
    ASSERT_NEAR(slow->levels[1].bandwidth_bytes_per_s, 25e9,
                0); /* the rate of its own NICs */
}

static const ms_cluster *slowed(ms_ctx *cx, const char *text)
{
    const ms_cluster *out;
    ASSERT_OK(ms_cluster_slow_down_by(cx, load("hgx-h100"), text, &out), cx);
    return out;
}

static void slow_nodes_are_cut_out_of_their_group(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_cluster *c = slowed(cx, "3:0.8,5-6:0.8,9:1:0.5");
    ASSERT_INT(c->num_kinds, 3);
    ASSERT_INT(ms_kinds_of_ranks(c, false, 0, 24), 1);
    ASSERT_INT(ms_kinds_of_ranks(c, false, 24, 8), 2);
    ASSERT_INT(ms_kinds_of_ranks(c, false, 32, 8), 1);
    ASSERT_INT(ms_kinds_of_ranks(c, true, 40, 16), 2); /* one group: no other order */
    ASSERT_INT(ms_kinds_of_ranks(c, false, 72, 8), 4);
    ASSERT_INT(ms_kinds_of_ranks(c, false, 80, 8000), 1);
    const ms_cluster *links = ms_cluster_of_kinds(cx->arena, c, 4, 2);
    ASSERT_NEAR(links->levels[1].bandwidth_bytes_per_s, 25e9, 0);
    ASSERT_INT(slowed(cx, NULL)->num_kinds, 0);
}

static void expect_slow_error(const char *text, const char *message)
{
    ms_ctx *cx = test_cx();
    const ms_cluster *out;
    ASSERT_INT(ms_cluster_slow_down_by(cx, load("hgx-h100"), text, &out), MS_EINPUT);
    if (strstr(test_messages(cx), message) == NULL)
        fail_msg("expected \"%s\" in:\n%s", message, test_messages(cx));
}

static void wrong_slow_nodes_are_refused(void **state)
{
    (void)state;
    expect_slow_error("3", "a speed is missing behind the nodes");
    expect_slow_error("3:0", "\"0\" is no fraction from 0.01 to 1");
    expect_slow_error("3:1.5", "\"1.5\" is no fraction from 0.01 to 1");
    expect_slow_error("5-3:0.5", "\"5-3\" is no node and no range of nodes");
    expect_slow_error("3:0.5,", "\"\" is no node and no range of nodes");
    expect_slow_error("-1:0.5", "\"-1\" is no node and no range of nodes");
    expect_slow_error("3:0.5,2-4:0.5", "node 3 is listed twice");
    expect_slow_error("1:0.5,2:0.6,3:0.7,4:0.8", "more than 4 kinds");
}

/* A mixed cluster file with one piece of text replaced gives this error at this place. */
static void expect_file_error(const char *old, const char *new, const char *message)
{
    static const char good[] =
        "{\"name\": \"m\", \"source\": \"test\", \"network\": \"infiniband\",\n"
        " \"device_groups\": [{\"cluster\": \"hgx-h100\", \"nodes\": 1},\n"
        "  {\"cluster\": \"hgx-a100-80g\", \"nodes\": 1}],\n"
        " \"slow\": [{\"nodes\": [1], \"compute_frac\": 0.5}],\n"
        " \"levels\": [{\"name\": \"n\", \"bandwidth\": \"1 GB/s\", \"latency\": \"1 us\"}]}";
    ms_ctx *cx = test_cx();
    const char *at = strstr(good, old);
    assert_non_null(at);
    const char *text = ms_arena_printf(cx->arena, "%.*s%s%s", (int)(at - good), good, new,
                                       at + strlen(old));
    ms_jdoc *doc;
    ms_jval root;
    ms_cluster cluster;
    ASSERT_OK(ms_json_parse(cx, "m.json", text, strlen(text), &doc, &root), cx);
    ms_status status = ms_cluster_read(cx, root, &cluster);
    ms_json_close(doc);
    ASSERT_INT(status, message == NULL ? MS_OK : MS_EINPUT);
    if (message != NULL && strstr(test_messages(cx), message) == NULL)
        fail_msg("expected \"%s\" in:\n%s", message, test_messages(cx));
}

static void wrong_mixed_files_are_refused_where_they_are_wrong(void **state)
{
    (void)state;
    expect_file_error("test", "test", NULL);
    expect_file_error("\"nodes\": 1},", "\"nodes\": 0},", "m.json:2:53");
    expect_file_error("hgx-a100-80g", "hgx-a100-80", "hgx-a100-80g");
    expect_file_error("hgx-a100-80g", "gb200-nvl72", "all groups need equal nodes");
    expect_file_error("hgx-a100-80g", "tpu-v5p", "needs NICs and a switch");
    expect_file_error("hgx-a100-80g", MIXED, "has devices of several kinds");
    expect_file_error("\"nodes\": [1]", "\"nodes\": [2]", "cluster \"m\" has 2 nodes");
    expect_file_error("\"nodes\": [1]", "\"nodes\": []", "array of numbers of nodes");
    expect_file_error("\"compute_frac\": 0.5", "\"compute_frac\": 0", "m.json:4:42");
    expect_file_error("\"compute_frac\": 0.5", "\"compute_frac\": 1", "below 1");
    expect_file_error("\"latency\": \"1 us\"", "\"latency\": \"1 us\", \"rails\": 8",
                      "holds everything");
    expect_file_error("\"levels\": [{", "\"levels\": [], \"x\": [{", "levels");
    expect_file_error("\"device_groups\": [{\"cluster\": \"hgx-h100\", \"nodes\": 1},",
                      "\"device_groups\": [", "array of 2 to 4 groups");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mixed_cluster_has_what_all_groups_have),
        cmocka_unit_test(ranks_take_groups_in_order_or_reversed),
        cmocka_unit_test(ranks_per_domain_are_placed_by_nodes),
        cmocka_unit_test(ranks_of_both_groups_see_the_slower_link_and_less_memory),
        cmocka_unit_test(slow_nodes_are_cut_out_of_their_group),
        cmocka_unit_test(wrong_slow_nodes_are_refused),
        cmocka_unit_test(wrong_mixed_files_are_refused_where_they_are_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
