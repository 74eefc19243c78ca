/* How the ranks of a mesh are laid on a slice of a TPU torus, by cases computed by
 * hand; and the cost laws of groups against the routes of their messages. */
#include "topo/torus.h"

#include "costmodel/cost/flows.h"

#include "tests/test.h"

static const ms_cluster *cluster_of(ms_ctx *cx, const char *name)
{
    const ms_cluster *cluster;
    ASSERT_OK(ms_cluster_load(cx, name, &cluster), cx);
    return cluster;
}

static ms_torus_span span_of(const ms_torus *torus, long size, long stride)
{
    ms_group group = {.size = size, .num_modes = 1, .modes = {{size, stride}}};
    return ms_torus_span_of(torus, &group, size);
}

/* How groups of `inner` adjacent ranks lie on a slice of so many `gpus`. A rank has
 * `inner_wires` in its group: 2 along a ring and 1 along a line, divided by the number of
 * groups that share them. `inner_hops`: wires from end to end of a group. `inner_cut`:
 * bytes on the busiest wire per byte that a rank sends in an all-to-all. `outer_wires`:
 * wires of a rank in its group across the rest of the slice. */
static void groups_get_blocks_of_the_slice(void **state)
{
    (void)state;
    static const struct {
        const char *cluster;
        long gpus, inner;
        double inner_wires, inner_hops, inner_cut, outer_wires;
    } rows[] = {
        /* slice 4 x 8 x 12, closed (rings): a group of 8 is the ring along the side of 8;
         * the groups across have the sides of 4 and 12 */
        {"tpu-v5p", 384, 8, 2, 4, 1, 4},
        /* slice 12 x 16 x 16: a group of 12 is the side of 12, as PaLM's tensor
         * parallel groups */
        {"tpu-v4", 3072, 12, 2, 6, 1.5, 4},
        /* slice 16 x 16 x 24: a group of 16 is one side of 16 */
        {"tpu-v5p", 6144, 16, 2, 8, 2, 4},
        /* slice 16 x 16 x 24: a group of 24 is the longest side */
        {"tpu-v5p", 6144, 24, 2, 12, 3, 4},
        /* slice 16 x 16 x 24: a group of 256 takes two whole sides, 16 x 16, rather
         * than parts of 24 */
        {"tpu-v5p", 6144, 256, 4, 16, 2, 2},
        /* slice 16 x 16 x 16: no side is 8, so a group is a block of 2 x 2 x 2, whose
         * three sides are lines; the groups across get every second chip of each ring */
        {"tpu-v4", 4096, 8, 3, 3, 0.5, 3},
        /* slice 4 x 4 x 6, open (lines): a group is a block of 2 x 2 x 2; the groups
         * across lie on lines of 4, 4 and 6 chips, each of which two groups share */
        {"tpu-v5p", 96, 8, 3, 3, 0.5, 1.5},
        {"tpu-v5e", 256, 16, 2, 8, 2, 2},
        {"tpu-v5e", 256, 4, 2, 2, 0.5, 2},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_torus torus =
            ms_torus_slice(&cluster_of(cx, rows[i].cluster)->levels[0], rows[i].gpus);
        ms_torus_arrange(&torus, &rows[i].inner, 1);
        ms_torus_span inner = span_of(&torus, rows[i].inner, 1);
        ASSERT_NEAR(inner.links, rows[i].inner_wires, 1e-12);
        ASSERT_NEAR(inner.hops, rows[i].inner_hops, 1e-12);
        ASSERT_NEAR(inner.cut, rows[i].inner_cut, 1e-12);
        ms_torus_span outer =
            span_of(&torus, rows[i].gpus / rows[i].inner, rows[i].inner);
        ASSERT_NEAR(outer.links, rows[i].outer_wires, 1e-12);
    }
}

/* Three axes on a slice of 4 x 8 x 12: tp 8, cp 4 and dp 12 are each a whole
 * side. */
static void every_axis_of_a_mesh_gets_its_sides(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_cluster *cluster = cluster_of(cx, "tpu-v5p");
    ms_mesh mesh = ms_mesh_make((const char *const[]){"dp", "cp", "tp"},
                                (const long[]){12, 4, 8}, 3);
    ms_torus torus = ms_torus_of_mesh(&cluster->levels[0], &mesh);
    for (int axis = 0; axis < 3; axis++) {
        ms_group group = ms_mesh_group(&mesh, &axis, 1);
        ms_span span = ms_group_span_on(&group, 384, cluster, &torus);
        ASSERT_NEAR(span.torus.links, 2.0, 1e-12);
        ASSERT_INT(span.torus.step, 1);
    }
    long where[MS_MAX_TORUS_DIMS];
    ms_torus_locate(&torus, 7 + 8 * 3 + 32 * 11, where);
    ASSERT_INT(where[0], 3);
    ASSERT_INT(where[1], 7);
    ASSERT_INT(where[2], 11);
}

/* A torus is laid out in blocks of the numbers of ranks at which the axes of two meshes
 * end, if all these numbers form a chain of divisors. The first mesh has 4 and 48: 12 of
 * the second fits between these, 6 does not. */
static void cuts_are_a_chain_of_divisors(void **state)
{
    (void)state;
    ms_mesh dense =
        ms_mesh_make((const char *const[]){"dp", "tp"}, (const long[]){12, 4}, 2);
    ms_mesh sparse =
        ms_mesh_make((const char *const[]){"efsdp", "ep"}, (const long[]){4, 12}, 2);
    ms_mesh other =
        ms_mesh_make((const char *const[]){"efsdp", "ep"}, (const long[]){8, 6}, 2);
    long cuts[MS_MAX_TORUS_CUTS];
    int num = ms_torus_add_cuts(&dense, cuts, 0);
    ASSERT_INT(num, 2);
    ASSERT_INT(ms_torus_add_cuts(&other, cuts, num), 2);
    ASSERT_INT(ms_torus_add_cuts(&sparse, cuts, num), 3);
    ASSERT_INT(cuts[0], 4);
    ASSERT_INT(cuts[1], 12);
    ASSERT_INT(cuts[2], 48);
}

static void every_rank_has_a_chip_of_its_own(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_level *level = &cluster_of(cx, "tpu-v5p")->levels[0];
    static const long cuts[][3] = {{2, 12, 96}, {8, 16, 48}, {3, 5, 7}, {6, 24, 192}};
    for (long gpus = 62; gpus <= 384; gpus += 46) {
        for (int i = 0; i < 4; i++) {
            ms_torus torus = ms_torus_slice(level, gpus);
            ms_torus_arrange(&torus, cuts[i], 3);
            long filled = 1;
            for (int d = 0; d < torus.num_digits; d++)
                filled *= torus.digit[d].size;
            ASSERT_INT(filled, ms_torus_positions(&torus));
            for (long rank = 0; rank < filled; rank++) {
                long where[MS_MAX_TORUS_DIMS];
                ms_torus_locate(&torus, rank, where);
                ASSERT_INT(ms_torus_rank_at(&torus, where), rank);
            }
        }
    }
}

/* A group of ranks 0, 5 and 10 on a ring of 16 chips communicates as a ring of its own,
 * with hops of 5, 5 and 6 wires, 16/3 on average. A rank sends over two wires, and the
 * busiest wire carries twice the average, which leaves 3/16 of a wire to the rank. The
 * cut for all-to-all is the mean distance of sampled pairs of group members: 0-2, 0-1,
 * 1-2 and 1-1, 4 wires. */
static void ranks_that_fill_no_block_are_a_ring_in_their_order(void **state)
{
    (void)state;
    ms_torus ring = {.num_dims = 1, .side = {16}, .closed = {true}};
    ms_torus_arrange(&ring, NULL, 0);
    ms_torus_span span = span_of(&ring, 3, 5);
    ASSERT_NEAR(span.links, 3.0 / 16.0, 1e-12);
    ASSERT_NEAR(span.hops, 8.0, 1e-12);
    ASSERT_NEAR(span.cut, 4.0, 1e-12);
    ASSERT_INT(span.step, 10);
}

/* ---- against routes ---- */

/* The largest number of bytes on any wire, when all groups of `size` ranks at `stride`
 * run the collective at once. */
static double busiest(ms_link_load *load, ms_collective collective, long size,
                      long stride)
{
    long ranks[512], gpus = load->fabric->num_gpus;
    ms_link_load_clear(load);
    for (long first = 0; first < gpus; first++) {
        if (first / stride % size != 0)
            continue;
        for (long i = 0; i < size; i++)
            ranks[i] = first + i * stride;
        ms_flows_add(
            load, collective == MS_ALL_TO_ALL ? MS_ALGORITHM_DIRECT : MS_ALGORITHM_RING,
            &(ms_flow){collective, ranks, size, 1.0});
    }
    double most = 0.0;
    for (int i = 0; i < load->num_loaded; i++)
        most = fmax(most, load->bytes[load->loaded[i]]);
    return most;
}

static void compare_with_routes(ms_link_load *load, const ms_cluster *cluster, long size,
                                long stride)
{
    long gpus = load->fabric->num_gpus;
    ms_group group = {.size = size, .num_modes = 1, .modes = {{size, stride}}};
    ms_span span = ms_group_span_on(&group, gpus, cluster, ms_fabric_torus(load->fabric));
    double part = (double)(size - 1) / (double)size;
    double ring = busiest(load, MS_ALL_GATHER, size, stride) / (part / span.torus.links);
    double each = busiest(load, MS_ALL_TO_ALL, size, stride) / span.torus.cut;
    if (ring < 0.3 || ring > 2.5 || each < 0.15 || each > 1.6)
        fail_msg("%s, %ld chips, %ld by %ld: %.3f of the ring, %.3f of each to each",
                 cluster->name, gpus, size, stride, ring, each);
}

/* When all groups of an axis, even or uneven, run a collective at once, the busiest
 * wire carries what the cost law says, within the factors that uneven groups need. */
static void laws_are_near_the_routes_of_all_groups(void **state)
{
    (void)state;
    static const struct {
        const char *cluster;
        long gpus;
    } slices[] = {{"tpu-v5p", 60}, {"tpu-v5p", 96}, {"tpu-v5p", 128}, {"tpu-v5p", 240},
                  {"tpu-v5e", 96}, {"tpu-v5e", 60}, {"tpu-v5e", 256}};
    ms_ctx *cx = test_cx();
    for (size_t s = 0; s < sizeof slices / sizeof *slices; s++) {
        const ms_cluster *cluster = cluster_of(cx, slices[s].cluster);
        long gpus = slices[s].gpus;
        const ms_fabric *fabric = ms_fabric_make(cx->arena, cluster, gpus, NULL);
        ms_link_load load = ms_link_load_open(cx->arena, fabric);
        for (long size = 2; size <= gpus; size++)
            for (long stride = 1; size * stride <= gpus; stride++)
                if (gpus % (size * stride) == 0)
                    compare_with_routes(&load, cluster, size, stride);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_get_blocks_of_the_slice),
        cmocka_unit_test(every_axis_of_a_mesh_gets_its_sides),
        cmocka_unit_test(cuts_are_a_chain_of_divisors),
        cmocka_unit_test(every_rank_has_a_chip_of_its_own),
        cmocka_unit_test(ranks_that_fill_no_block_are_a_ring_in_their_order),
        cmocka_unit_test(laws_are_near_the_routes_of_all_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
