#include "topo/mesh.h"

#include "tests/test.h"

/* The mesh of 16 ranks with the axes of torchtitan (pytorch/torchtitan
 * torchtitan/distributed/parallel_dims.py). */
static ms_mesh dense_mesh(void)
{
    static const char *const names[] = {"pp", "dp_replicate", "dp_shard", "cp", "tp"};
    static const long sizes[] = {2, 1, 2, 2, 2};
    return ms_mesh_make(names, sizes, 5);
}

/* A mesh of the same 16 ranks for expert layers, where ep is the innermost axis
 * (torchtitan PR 1660). */
static ms_mesh sparse_mesh(void)
{
    static const char *const names[] = {"pp", "dp_replicate", "efsdp", "ep"};
    static const long sizes[] = {2, 1, 2, 4};
    return ms_mesh_make(names, sizes, 4);
}

static void expect_group(const ms_mesh *mesh, const ms_group *group, long rank,
                         const long *want, long num_want)
{
    long ranks[64];
    ASSERT_INT(group->size, num_want);
    ms_mesh_group_ranks(mesh, group, rank, ranks);
    for (long i = 0; i < num_want; i++)
        ASSERT_INT(ranks[i], want[i]);
}

static void expect_axis(const ms_mesh *mesh, const char *name, long rank,
                        const long *want, long num_want)
{
    int axis = ms_mesh_find(mesh, name);
    assert_true(axis >= 0);
    ms_group group = ms_mesh_group(mesh, &axis, 1);
    expect_group(mesh, &group, rank, want, num_want);
}

static void dense_axes_have_torchtitans_groups(void **state)
{
    (void)state;
    ms_mesh mesh = dense_mesh();
    ASSERT_INT(mesh.num_ranks, 16);
    expect_axis(&mesh, "tp", 0, (const long[]){0, 1}, 2);
    expect_axis(&mesh, "tp", 15, (const long[]){14, 15}, 2);
    expect_axis(&mesh, "cp", 0, (const long[]){0, 2}, 2);
    expect_axis(&mesh, "cp", 7, (const long[]){5, 7}, 2);
    expect_axis(&mesh, "cp", 8, (const long[]){8, 10}, 2);
    expect_axis(&mesh, "dp_shard", 1, (const long[]){1, 5}, 2);
    expect_axis(&mesh, "dp_shard", 12, (const long[]){8, 12}, 2);
    expect_axis(&mesh, "pp", 15, (const long[]){7, 15}, 2);
    expect_axis(&mesh, "dp_replicate", 3, (const long[]){3}, 1);
}

static void flattened_fsdp_axis_covers_dp_shard_and_cp(void **state)
{
    (void)state;
    ms_mesh mesh = dense_mesh();
    ms_group group = ms_mesh_group(&mesh, (const int[]){3, 2}, 2);
    /* cp and dp_shard are adjacent axes, so their group is a single mode 4:2 (size 4,
     * stride 2) */
    ASSERT_INT(group.num_modes, 1);
    ASSERT_INT(group.modes[0].size, 4);
    ASSERT_INT(group.modes[0].stride, 2);
    expect_group(&mesh, &group, 6, (const long[]){0, 2, 4, 6}, 4);
    expect_group(&mesh, &group, 1, (const long[]){1, 3, 5, 7}, 4);
    expect_group(&mesh, &group, 15, (const long[]){9, 11, 13, 15}, 4);
}

static void expert_axes_take_the_innermost_ranks(void **state)
{
    (void)state;
    ms_mesh mesh = sparse_mesh();
    expect_axis(&mesh, "ep", 2, (const long[]){0, 1, 2, 3}, 4);
    expect_axis(&mesh, "ep", 12, (const long[]){12, 13, 14, 15}, 4);
    expect_axis(&mesh, "efsdp", 0, (const long[]){0, 4}, 2);
    expect_axis(&mesh, "efsdp", 7, (const long[]){3, 7}, 2);
}

static void axes_that_do_not_touch_stay_two_modes(void **state)
{
    (void)state;
    ms_mesh mesh = dense_mesh();
    /* a group over dp_shard and tp, between which the mesh has cp */
    ms_group group = ms_mesh_group(&mesh, (const int[]){2, 4}, 2);
    ASSERT_INT(group.num_modes, 2);
    expect_group(&mesh, &group, 3, (const long[]){2, 3, 6, 7}, 4);
}

static void absent_axis_is_minus_one(void **state)
{
    (void)state;
    ms_mesh mesh = dense_mesh();
    ASSERT_INT(ms_mesh_find(&mesh, "ep"), -1);
    ASSERT_INT(ms_mesh_find(&mesh, "pp"), 0);
    ms_group nothing = ms_mesh_group(&mesh, NULL, 0);
    ASSERT_INT(nothing.size, 1);
    expect_group(&mesh, &nothing, 9, (const long[]){9}, 1);
}

static ms_cluster make_cluster(long domain, long leaf, long node)
{
    ms_cluster cluster = {.name = "test", .gpus_per_node = node, .num_levels = 3};
    cluster.levels[0].gpus_per_domain = domain;
    cluster.levels[1].gpus_per_domain = leaf;
    return cluster;
}

/* A group of n ranks at stride d: p = min(n, G/d) ranks share a node of G GPUs if G
 * is a multiple of d and d < G; one rank if d >= G. */
static void ranks_per_node_follow_the_closed_form(void **state)
{
    (void)state;
    ms_cluster cluster = make_cluster(8, 256, 8);
    for (long stride = 1; stride <= 64; stride *= 2)
        for (long size = 2; size * stride <= 1024; size *= 2) {
            const char *names[] = {"outer", "axis", "inner"};
            ms_mesh mesh = ms_mesh_make(
                names, (const long[]){1024 / (size * stride), size, stride}, 3);
            ms_group group = ms_mesh_group(&mesh, (const int[]){1}, 1);
            ms_span span = ms_group_span(&group, mesh.num_ranks, &cluster);
            long in_node = stride >= 8 ? 1 : 8 / stride < size ? 8 / stride : size;
            long in_leaf = stride >= 256 ? 1 : 256 / stride < size ? 256 / stride : size;
            ASSERT_INT(span.per_domain[0], in_node);
            ASSERT_INT(span.per_domain[1], in_leaf);
            ASSERT_INT(span.per_domain[2], size);
            ASSERT_INT(span.tier, in_node == size ? 0 : in_leaf == size ? 1 : 2);
        }
}

/* The mean ranks per domain, rounded up, of the group that touches the most domains;
 * counted from the ranks of every group. */
static long slowest_by_hand(const ms_mesh *mesh, const ms_group *group, long domain)
{
    long most = 0;
    for (long rank = 0; rank < mesh->num_ranks; rank++) {
        long ranks[64], num_domains = 0;
        bool touched[64] = {false};
        ms_mesh_group_ranks(mesh, group, rank, ranks);
        for (long i = 0; i < group->size; i++) {
            num_domains += !touched[ranks[i] / domain];
            touched[ranks[i] / domain] = true;
        }
        most = num_domains > most ? num_domains : most;
    }
    return (group->size + most - 1) / most;
}

/* The fewest ranks of one group in a domain, over all groups and all domains that hold
 * some but not all ranks of a group. 0: every group is inside one domain. */
static long narrowest_by_hand(const ms_mesh *mesh, const ms_group *group, long domain)
{
    long least = 0;
    for (long rank = 0; rank < mesh->num_ranks; rank++) {
        long ranks[64], num[64] = {0};
        ms_mesh_group_ranks(mesh, group, rank, ranks);
        for (long i = 0; i < group->size; i++)
            num[ranks[i] / domain]++;
        for (long d = 0; d * domain < mesh->num_ranks; d++)
            if (num[d] > 0 && num[d] < group->size && (least == 0 || num[d] < least))
                least = num[d];
    }
    return least;
}

static void check_groups(const ms_mesh *mesh)
{
    for (int mask = 1; mask < 1 << mesh->num_axes; mask++) {
        int axes[MS_MAX_AXES], num_axes = 0;
        for (int i = 0; i < mesh->num_axes; i++)
            if (mask >> i & 1)
                axes[num_axes++] = i;
        ms_group group = ms_mesh_group(mesh, axes, num_axes);
        int covered[64] = {0};
        for (long rank = 0; rank < mesh->num_ranks; rank++) {
            long ranks[64];
            ms_mesh_group_ranks(mesh, &group, rank, ranks);
            int found = 0;
            for (long i = 0; i < group.size; i++) {
                found += ranks[i] == rank;
                covered[rank] += ranks[i] == rank && ranks[0] <= rank;
                assert_true(i == 0 || ranks[i] > ranks[i - 1]);
            }
            ASSERT_INT(found, 1);
        }
        for (long rank = 0; rank < mesh->num_ranks; rank++)
            ASSERT_INT(covered[rank], 1);
        static const long domains[] = {2, 3, 4, 6, 8, 9, 12, 18};
        for (size_t i = 0; i < sizeof domains / sizeof *domains; i++) {
            ms_cluster cluster = make_cluster(domains[i], 36 * domains[i], domains[i]);
            ms_span span = ms_group_span(&group, mesh->num_ranks, &cluster);
            ASSERT_INT(span.per_domain[0], slowest_by_hand(mesh, &group, domains[i]));
            long narrowest = narrowest_by_hand(mesh, &group, domains[i]);
            bool binds = narrowest > 0 && narrowest < span.per_domain[0];
            ASSERT_INT(span.narrowest, binds ? narrowest : span.per_domain[0]);
        }
    }
}

static void every_mesh_up_to_64_ranks_partitions_them(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c"};
    for (long num_ranks = 1; num_ranks <= 64; num_ranks++)
        for (long a = 1; a <= num_ranks; a++)
            for (long b = 1; num_ranks % a == 0 && b <= num_ranks / a; b++)
                if (num_ranks / a % b == 0) {
                    ms_mesh mesh =
                        ms_mesh_make(names, (const long[]){a, b, num_ranks / a / b}, 3);
                    ASSERT_INT(mesh.num_ranks, num_ranks);
                    check_groups(&mesh);
                }
}

static void groups_in_a_rack_of_72_describe_the_slowest(void **state)
{
    (void)state;
    ms_cluster cluster = make_cluster(72, 576, 4);
    ms_mesh mesh =
        ms_mesh_make((const char *const[]){"dp", "tp"}, (const long[]){36, 16}, 2);
    int axis = 1;
    ms_group tp = ms_mesh_group(&mesh, &axis, 1);
    ms_span span = ms_group_span(&tp, mesh.num_ranks, &cluster);
    /* ranks 64..79 are split over two domains of 72, 8 in each */
    ASSERT_INT(span.per_domain[0], 8);
    ASSERT_INT(span.tier, 1);
    mesh = ms_mesh_make((const char *const[]){"dp", "tp"}, (const long[]){72, 8}, 2);
    tp = ms_mesh_group(&mesh, &axis, 1);
    span = ms_group_span(&tp, mesh.num_ranks, &cluster);
    ASSERT_INT(span.per_domain[0], 8);
    ASSERT_INT(span.tier, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_axes_have_torchtitans_groups),
        cmocka_unit_test(flattened_fsdp_axis_covers_dp_shard_and_cp),
        cmocka_unit_test(expert_axes_take_the_innermost_ranks),
        cmocka_unit_test(axes_that_do_not_touch_stay_two_modes),
        cmocka_unit_test(absent_axis_is_minus_one),
        cmocka_unit_test(ranks_per_node_follow_the_closed_form),
        cmocka_unit_test(every_mesh_up_to_64_ranks_partitions_them),
        cmocka_unit_test(groups_in_a_rack_of_72_describe_the_slowest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
