/* Placements of a tensor on a mesh: what ranks hold, uneven shards, strided shards, orders of axes, and both notations. */
#include "costmodel/spec.h"
#include "tests/support/sharded_tensor.h"

#include "tests/test.h"

static ms_mesh mesh_dp_tp(long dp, long tp)
{
    return ms_mesh_make((const char *const[]){"dp", "tp"}, (const long[]){dp, tp}, 2);
}

static ms_placement strided(char letter, int factor)
{
    ms_placement at = ms_shard(letter);
    at.split_factor = factor;
    return at;
}

/* The indices of dim 0 that a rank holds: "0-1 4-5". */
static const char *held(ms_arena *arena, const ms_mesh *mesh, const ms_spec *spec, long n,
                        long rank)
{
    ms_global_tensor x = {"x", 1, "a", {n}, 4};
    ms_ranges ranges = ms_spec_ranges(arena, mesh, spec, &x, 0, rank);
    const char *text = "";
    for (int i = 0; i < ranges.num_ranges; i++)
        text = ms_arena_printf(arena, "%s%s%ld-%ld", text, i == 0 ? "" : " ",
                               ranges.ranges[i].start,
                               ranges.ranges[i].start + ranges.ranges[i].length - 1);
    return text;
}

/* The example of _StridedShard's docstring (pytorch torch/distributed/tensor/placement_types.py): 8 rows on [[0,1],[2,3]]. */
static void strided_shards_interleave_as_in_pytorch(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_mesh mesh = mesh_dp_tp(2, 2);
    ms_spec plain = {{ms_shard('a'), ms_shard('a')}};
    ms_spec fsdp_over_tp = {{strided('a', 2), ms_shard('a')}};
    static const char *const rows[4] = {"0-1", "2-3", "4-5", "6-7"};
    static const int over_tp[4] = {0, 2, 1, 3};
    for (long rank = 0; rank < 4; rank++) {
        ASSERT_TEXT(held(cx->arena, &mesh, &plain, 8, rank), rows[rank]);
        ASSERT_TEXT(held(cx->arena, &mesh, &fsdp_over_tp, 8, rank), rows[over_tp[rank]]);
    }
}

/* torch.chunk: ceil(n/k) each until nothing is left. */
static void uneven_shards_are_those_of_torch_chunk(void **state)
{
    (void)state;
    static const struct {
        long n, ranks, want[6];
    } cases[] = {{10, 4, {3, 3, 3, 1}},      {7, 4, {2, 2, 2, 1}}, {5, 4, {2, 2, 1, 0}},
                 {9, 6, {2, 2, 2, 2, 1, 0}}, {2, 4, {1, 1, 0, 0}}, {8, 4, {2, 2, 2, 2}}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        ms_mesh mesh = ms_mesh_make((const char *const[]){"tp"}, &cases[c].ranks, 1);
        ms_spec spec = {{ms_shard('a')}};
        ms_global_tensor x = {"x", 2, "ab", {cases[c].n, 5}, 4};
        long size[2];
        for (long rank = 0; rank < cases[c].ranks; rank++) {
            ms_spec_local_size(&mesh, &spec, &x, rank, size);
            ASSERT_INT(size[0], cases[c].want[rank]);
            ASSERT_INT(size[1], 5);
        }
        ASSERT_NEAR(ms_spec_local_bytes(&mesh, &spec, &x),
                    4.0 * 5.0 * (double)cases[c].want[0], 0);
    }
}

/* 10 rows, (tp 4, then dp 2) written left to right: pieces 3 3 3 1, halves 2+1 2+1 2+1 1+0. */
static void uneven_strided_shards_cut_every_piece(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_mesh dp = ms_mesh_make((const char *const[]){"dp"}, (const long[]){2}, 1);
    ms_spec spec = {{strided('a', 4)}};
    ASSERT_TEXT(held(cx->arena, &dp, &spec, 10, 0), "0-1 3-4 6-7 9-9");
    ASSERT_TEXT(held(cx->arena, &dp, &spec, 10, 1), "2-2 5-5 8-8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strided_shards_interleave_as_in_pytorch),
        cmocka_unit_test(uneven_shards_are_those_of_torch_chunk),
        cmocka_unit_test(uneven_strided_shards_cut_every_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
