#include "topo/mesh_place.h"

#include "tests/test.h"

static ms_cluster nodes_of(long domain)
{
    return (ms_cluster){.name = "test",
                        .gpus_per_node = domain,
                        .num_levels = 3,
                        .levels = {{.name = "link",
                                    .gpus_per_domain = domain,
                                    .bandwidth_bytes_per_s = 450e9,
                                    .oversubscription = 1.0},
                                   {.name = "leaf",
                                    .gpus_per_domain = 32 * domain,
                                    .bandwidth_bytes_per_s = 50e9,
                                    .oversubscription = 1.0,
                                    .nics_per_gpu = 1.0},
                                   {.name = "spine",
                                    .bandwidth_bytes_per_s = 50e9,
                                    .oversubscription = 4.0,
                                    .nics_per_gpu = 1.0}}};
}

static ms_axis_place place(long size, long stride, long num_ranks,
                           const ms_cluster *cluster)
{
    ms_ctx *cx = test_cx();
    ms_layout layout = ms_layout_make(MS_LEXICOGRAPHIC, size, stride);
    long *ranks;
    ASSERT_OK(ms_layout_groups(cx, layout, num_ranks, &ranks), cx);
    return ms_axis_place_of(cx->arena, layout, ranks, num_ranks, cluster);
}

/* An axis of n ranks at stride d on nodes of G GPUs: p = min(n, G/d) ranks of a group
 * share a node, a group spans n/p nodes, and G/p groups share the NICs of a node. Source:
 * jax-ml/scaling-book gpus.md. */
static void places_follow_the_closed_form(void **state)
{
    (void)state;
    ms_cluster cluster = nodes_of(8);
    for (long stride = 1; stride <= 32; stride *= 2)
        for (long size = 2; size * stride <= 256; size *= 2) {
            ms_axis_place got = place(size, stride, 256, &cluster);
            long p = stride >= 8 ? 1 : 8 / stride < size ? 8 / stride : size;
            ASSERT_INT(got.num_groups, 256 / size);
            ASSERT_INT(got.ranks_per_node, p);
            ASSERT_INT(got.nodes, size / p);
            if (size == p) {
                ASSERT_TEXT(got.tier, "link");
                ASSERT_INT(got.siblings, 0);
                ASSERT_NEAR(got.nics, 0.0, 0.0);
                continue;
            }
            ASSERT_TEXT(got.tier, "leaf");
            ASSERT_INT(got.siblings, 8 / p);
            ASSERT_NEAR(got.nics, (double)p, 1e-15);
            ASSERT_NEAR(got.bytes_per_s, 50e9 * (double)p, 1e-15);
        }
}

/* The sibling groups in a node use all its NICs together, at whatever stride the axis
 * lies. */
static void siblings_share_all_nics_of_a_node(void **state)
{
    (void)state;
    ms_cluster cluster = nodes_of(8);
    for (long stride = 1; stride <= 8; stride *= 2) {
        ms_axis_place got = place(16, stride, 256, &cluster);
        ASSERT_NEAR((double)got.siblings * got.nics, 8.0, 1e-15);
    }
}

static void oversubscribed_levels_and_more_nics_count(void **state)
{
    (void)state;
    ms_cluster cluster = nodes_of(8);
    /* a group of two ranks, each under a leaf switch of its own */
    ms_axis_place got = place(2, 256, 512, &cluster);
    ASSERT_TEXT(got.tier, "spine");
    ASSERT_NEAR(got.bytes_per_s, 12.5e9, 1e-15);
    cluster.levels[1].nics_per_gpu = 4.0;
    /* the group has 2 ranks in each node, and each rank has 4 NICs */
    ASSERT_NEAR(place(16, 4, 64, &cluster).nics, 8.0, 1e-15);
}

/* Twelve ranks on nodes of eight GPUs: the second node is half full. */
static void half_full_nodes_are_counted(void **state)
{
    (void)state;
    ms_cluster cluster = nodes_of(8);
    ms_axis_place outer = place(3, 4, 12, &cluster);
    ASSERT_INT(outer.nodes, 2);
    ASSERT_INT(outer.ranks_per_node, 2); /* two in the first node, one in the second */
    ASSERT_INT(outer.siblings, 4);
    ms_axis_place inner = place(4, 1, 12, &cluster);
    ASSERT_INT(inner.nodes, 1);
    ASSERT_INT(ms_cluster_node_ranks(&cluster, 12), 8);
    ASSERT_INT(ms_cluster_node_ranks(&cluster, 4), 4);
}

static void a_rack_is_one_node(void **state)
{
    (void)state;
    ms_cluster cluster = nodes_of(72);
    ASSERT_INT(place(64, 1, 64, &cluster).nodes, 1);
    ASSERT_INT(place(2, 72, 144, &cluster).siblings, 72);
    /* the group of ranks 64..79 crosses the domain boundary at 72 */
    ASSERT_INT(place(16, 1, 144, &cluster).nodes, 2);
}

static void a_flattened_axis_is_a_group_of_its_modes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_layout modes[2] = {ms_layout_make(MS_LEXICOGRAPHIC, 2, 4),
                          ms_layout_make(MS_LEXICOGRAPHIC, 2, 2)},
              both;
    ASSERT_OK(ms_layout_join(cx, modes, 2, &both), cx);
    ms_group group = ms_layout_group(cx->arena, both);
    ASSERT_INT(group.num_modes, 1);
    ASSERT_INT(group.modes[0].size, 4);
    ASSERT_INT(group.modes[0].stride, 2);
    modes[1] = ms_layout_make(MS_LEXICOGRAPHIC, 2, 1);
    ASSERT_OK(ms_layout_join(cx, modes, 2, &both), cx);
    ASSERT_INT(ms_layout_group(cx->arena, both).num_modes, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_follow_the_closed_form),
        cmocka_unit_test(siblings_share_all_nics_of_a_node),
        cmocka_unit_test(oversubscribed_levels_and_more_nics_count),
        cmocka_unit_test(half_full_nodes_are_counted),
        cmocka_unit_test(a_rack_is_one_node),
        cmocka_unit_test(a_flattened_axis_is_a_group_of_its_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
