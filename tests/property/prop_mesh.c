/* Which ranks the groups of a mesh have, and how many of them share a node:
 * topo/mesh.c, the layout algebra and plain counting agree. */
#include "base/rng.h"
#include "topo/layout_priv.h"
#include "topo/mesh_footing.h"

#include "tests/support/layouts.h"
#include "tests/test.h"

typedef void visit(ms_ctx *cx, const ms_mesh *mesh, const ms_group *group);

/* Calls `look` with every group of every mesh of three axes. */
static void visit_groups(long num_ranks, visit *look)
{
    static const char *const names[] = {"a", "b", "c"};
    for (long a = 1; a <= num_ranks; a++)
        for (long b = 1; num_ranks % a == 0 && b <= num_ranks / a; b++) {
            if (num_ranks / a % b != 0)
                continue;
            ms_arena *arena = ms_arena_open();
            ms_ctx cx = {.arena = arena};
            ms_mesh mesh =
                ms_mesh_make(names, (const long[]){a, b, num_ranks / a / b}, 3);
            for (int mask = 0; mask < 8; mask++) {
                int axes[3], num_axes = 0;
                for (int i = 0; i < 3; i++)
                    if (mask >> i & 1)
                        axes[num_axes++] = i;
                ms_group group = ms_mesh_group(&mesh, axes, num_axes);
                look(&cx, &mesh, &group);
            }
            ms_arena_close(arena);
        }
}

/* All groups as one layout in lexicographic order: its value at (k, i) is rank i of
 * group k. */
static ms_layout all_groups(ms_ctx *cx, const ms_mesh *mesh, const ms_group *group)
{
    ms_layout groups, world = ms_layout_make(MS_LEXICOGRAPHIC, mesh->num_ranks, 1);
    ms_layout sub =
        ms_layout_of_modes(cx->arena, MS_LEXICOGRAPHIC, group->modes, group->num_modes);
    ASSERT_OK(ms_layout_divide(cx, world, sub, &groups), cx);
    return groups;
}

static void look_at_groups(ms_ctx *cx, const ms_mesh *mesh, const ms_group *group)
{
    long ranks[64], seen[64] = {0};
    ms_layout groups = all_groups(cx, mesh, group);
    ASSERT_INT(groups.size, mesh->num_ranks);
    ASSERT_INT(ms_layout_mode(groups, 1).size, group->size);
    for (long k = 0; k < ms_layout_mode(groups, 0).size; k++) {
        long base = test_layout_at(groups, (const long[]){k, 0});
        ms_mesh_group_ranks(mesh, group, base, ranks);
        for (long i = 0; i < group->size; i++) {
            ASSERT_INT(test_layout_at(groups, (const long[]){k, i}), ranks[i]);
            seen[ranks[i]]++;
        }
    }
    for (long i = 0; i < mesh->num_ranks; i++)
        ASSERT_INT(seen[i], 1);
}

static void groups_of_a_mesh_are_the_division_of_the_world(void **state)
{
    (void)state;
    for (long num_ranks = 1; num_ranks <= 64; num_ranks++)
        visit_groups(num_ranks, look_at_groups);
}

/* In every group, each node that the group touches holds `want` of its ranks. */
static void expect_in_nodes(ms_ctx *cx, ms_layout groups, long node, long want)
{
    const long *ranks = ms_layout_values(cx->arena, groups);
    long size = ms_layout_mode(groups, 1).size;
    for (long k = 0; k < ms_layout_mode(groups, 0).size; k++) {
        long counts[64] = {0};
        for (long i = 0; i < size; i++)
            counts[ranks[k * size + i] / node]++;
        for (long i = 0; i < size; i++)
            ASSERT_INT(counts[ranks[k * size + i] / node], want);
    }
}

static void expect_in_span(const ms_mesh *mesh, const ms_group *group, long node,
                           long want)
{
    ms_cluster cluster = {.name = "test", .gpus_per_node = node, .num_levels = 2};
    cluster.levels[0].gpus_per_domain = node;
    ms_span span = ms_group_span(group, mesh->num_ranks, &cluster);
    ASSERT_INT(span.per_domain[0], want);
}

/* The node of each rank as a layout, for W ranks in W/G nodes of G ranks:
 * (W/G,G):(1,0). */
static ms_layout node_of_rank(ms_ctx *cx, long num_ranks, long node)
{
    ms_layout out, pair[] = {ms_layout_make(MS_LEXICOGRAPHIC, num_ranks / node, 1),
                             ms_layout_make(MS_LEXICOGRAPHIC, node, 0)};
    ASSERT_OK(ms_layout_join(cx, pair, 2, &out), cx);
    return out;
}

static long num_even, num_uneven;

/* Composes the function from rank to node with the layout of all groups. The product of
 * the sizes of the modes that have stride 0 within a group must be the number of the
 * group's ranks in a node. */
static void look_at_nodes(ms_ctx *cx, const ms_mesh *mesh, const ms_group *group)
{
    ms_layout nodes, groups = all_groups(cx, mesh, group);
    for (long node = 2; node < mesh->num_ranks; node++) {
        if (mesh->num_ranks % node != 0)
            continue;
        ms_layout node_of = node_of_rank(cx, mesh->num_ranks, node);
        if (ms_layout_compose(cx, node_of, groups, &nodes) != MS_OK) {
            num_uneven++;
            continue;
        }
        ms_layout in_group = ms_layout_coalesce(cx->arena, ms_layout_mode(nodes, 1));
        long per_node = 1;
        for (int i = 0; i < ms_layout_rank(in_group); i++)
            if (ms_layout_mode(in_group, i).stride == 0)
                per_node *= ms_layout_mode(in_group, i).size;
        expect_in_nodes(cx, groups, node, per_node);
        expect_in_span(mesh, group, node, per_node);
        num_even++;
    }
}

static void ranks_per_node_are_a_composition(void **state)
{
    (void)state;
    for (long num_ranks = 1; num_ranks <= 64; num_ranks++)
        visit_groups(num_ranks, look_at_nodes);
    assert_true(num_even > 10000 && num_uneven > 1000);
}

/* ---- domains that groups do not fill evenly ---- */

#define NUM_FOOTINGS TEST_CASES(6000, 1500)
#define MOST_RANKS   1024

/* Counts the ranks of one group in each domain of `domain` ranks. Raises out->num_domains
 * to the number of domains that the group touches. If it touches several, lowers
 * out->narrowest to the fewest ranks in one of them. */
static void count_group(const long *ranks, long size, long domain, ms_footing *out)
{
    long counts[MOST_RANKS] = {0}, touched = 0, narrowest = 0;
    for (long i = 0; i < size; i++)
        touched += counts[ranks[i] / domain]++ == 0;
    for (long d = 0; d < MOST_RANKS; d++)
        if (counts[d] > 0 && (narrowest == 0 || counts[d] < narrowest))
            narrowest = counts[d];
    out->num_domains = touched > out->num_domains ? touched : out->num_domains;
    if (touched > 1 && (out->narrowest == 0 || narrowest < out->narrowest))
        out->narrowest = narrowest;
}

static ms_footing count_all(const ms_mesh *mesh, const ms_group *group, long domain)
{
    long ranks[MOST_RANKS];
    bool seen[MOST_RANKS] = {false};
    ms_footing out = {0};
    for (long base = 0; base < mesh->num_ranks; base++) {
        if (seen[base])
            continue;
        ms_mesh_group_ranks(mesh, group, base, ranks);
        for (long i = 0; i < group->size; i++)
            seen[ranks[i]] = true;
        count_group(ranks, group->size, domain, &out);
    }
    return out;
}

/* A random mesh of one to five axes, some of size one. */
static ms_mesh draw_mesh(ms_rng *rng)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    long sizes[5], num_ranks = 1;
    int num_axes = 1 + (int)ms_rng_below(rng, 5);
    for (int i = 0; i < num_axes; i++) {
        long most = MOST_RANKS / num_ranks < 12 ? MOST_RANKS / num_ranks : 12;
        sizes[i] = 1 + (long)ms_rng_below(rng, (uint64_t)most);
        num_ranks *= sizes[i];
    }
    return ms_mesh_make(names, sizes, num_axes);
}

static ms_group draw_group(ms_rng *rng, const ms_mesh *mesh, bool *merges)
{
    int axes[5], num_axes = 0;
    for (int i = 0; i < mesh->num_axes; i++)
        if (ms_rng_below(rng, 3) > 0)
            axes[num_axes++] = i;
    ms_group group = ms_mesh_group(mesh, axes, num_axes);
    *merges = group.num_modes > 0 && group.num_modes < num_axes;
    return group;
}

static void footings_are_what_counting_says(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(41);
    long num_odd = 0, num_merged = 0, num_cut = 0, num_narrow = 0;
    for (int i = 0; i < NUM_FOOTINGS; i++) {
        bool merges;
        ms_mesh mesh = draw_mesh(&rng);
        ms_group group = draw_group(&rng, &mesh, &merges);
        long domain = 1 + (long)ms_rng_below(&rng, (uint64_t)mesh.num_ranks + 3);
        domain = ms_rng_below(&rng, 2) == 0 ? 1 + domain % 24 : domain;
        ms_footing want = count_all(&mesh, &group, domain);
        ms_footing got = ms_footing_of(&group, mesh.num_ranks, domain);
        if (got.num_domains != want.num_domains || got.narrowest != want.narrowest)
            fail_msg("case %d, %ld ranks in domains of %ld: got %ld domains and %ld "
                     "ranks, want %ld and %ld",
                     i, mesh.num_ranks, domain, got.num_domains, got.narrowest,
                     want.num_domains, want.narrowest);
        num_odd += domain % 2 == 1 && want.num_domains > 1;
        num_merged += merges;
        num_cut += mesh.num_ranks % domain != 0 && mesh.num_ranks > domain;
        num_narrow += want.narrowest * want.num_domains < group.size;
    }
    const long least = NUM_FOOTINGS / 10;
    assert_true(num_odd > least && num_merged > least && num_cut > least &&
                num_narrow > least);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_of_a_mesh_are_the_division_of_the_world),
        cmocka_unit_test(ranks_per_node_are_a_composition),
        cmocka_unit_test(footings_are_what_counting_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
