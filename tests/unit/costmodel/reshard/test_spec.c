/* Placements of a tensor on a mesh: which elements ranks hold, uneven shards, strided
 * shards, orders of axes, and both notations. */
#include "costmodel/reshard/spec.h"
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

/* The indices of dim 0 that a rank holds, as text: "0-1 4-5". */
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

/* The example in the docstring of _StridedShard (pytorch
 * torch/distributed/tensor/placement_types.py): 8 rows on the mesh [[0,1],[2,3]]. */
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

/* Number of indices of dim `dim` that the rank holds; torch.chunk gives each of k
 * ranks ceil(n/k) until nothing is left. */
static long local_size(const ms_mesh *mesh, const ms_spec *spec,
                       const ms_global_tensor *x, int dim, long rank)
{
    return ms_ranges_length(ms_spec_ranges(test_cx()->arena, mesh, spec, x, dim, rank));
}

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
        for (long rank = 0; rank < cases[c].ranks; rank++) {
            ASSERT_INT(local_size(&mesh, &spec, &x, 0, rank), cases[c].want[rank]);
            ASSERT_INT(local_size(&mesh, &spec, &x, 1, rank), 5);
        }
        ASSERT_NEAR(ms_spec_local_bytes(&mesh, &spec, &x),
                    4.0 * 5.0 * (double)cases[c].want[0], 0);
    }
}

/* 10 rows sharded over tp 4 and, inside, over dp 2: the tp pieces are 3, 3, 3, 1 rows;
 * dp splits each into 2+1, 2+1, 2+1, 1+0. */
static void uneven_strided_shards_cut_every_piece(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_mesh dp = ms_mesh_make((const char *const[]){"dp"}, (const long[]){2}, 1);
    ms_spec spec = {{strided('a', 4)}};
    ASSERT_TEXT(held(cx->arena, &dp, &spec, 10, 0), "0-1 3-4 6-7 9-9");
    ASSERT_TEXT(held(cx->arena, &dp, &spec, 10, 1), "2-2 5-5 8-8");
}

/* 14 rows are sharded over dp 3 into parts of 5, 5 and 4 rows. Each part is cut into 4
 * pieces, and each piece is split over cp 4. In a part of 5 rows the pieces have 2, 2 and
 * 1 rows, so the first cp rank holds 3; in the part of 4 rows each piece has 1, so the
 * first cp rank holds 4. Thus the largest share is not on rank 0. */
static void the_largest_part_is_found_wherever_it_is(void **state)
{
    (void)state;
    ms_mesh mesh =
        ms_mesh_make((const char *const[]){"dp", "cp"}, (const long[]){3, 4}, 2);
    ms_spec spec = {{ms_shard('a'), strided('a', 4)}};
    ms_global_tensor x = {"x", 1, "a", {14}, 1};
    long size, largest = 0;
    for (long rank = 0; rank < 12; rank++) {
        size = local_size(&mesh, &spec, &x, 0, rank);
        largest = size > largest ? size : largest;
    }
    ASSERT_INT(largest, 4);
    ms_spec_largest_size(&mesh, &spec, &x, &size);
    ASSERT_INT(size, 4);
}

/* ---- order of axes ---- */

static void factors_say_the_order_of_axes(void **state)
{
    (void)state;
    ms_mesh mesh =
        ms_mesh_make((const char *const[]){"a", "b", "c"}, (const long[]){2, 3, 4}, 3);
    static const struct {
        /* `order`: the axes a 0, b 1, c 2 from the outermost in; `factors`: of a, b, c */
        int order[3], factors[3];
    } cases[] = {{{0, 1, 2}, {0, 0, 0}}, {{0, 2, 1}, {0, 4, 0}},
                 {{1, 0, 2}, {3, 0, 0}}, {{1, 2, 0}, {12, 0, 0}},
                 {{2, 0, 1}, {4, 4, 0}}, {{2, 1, 0}, {12, 4, 0}}};
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        ms_axis_order order = {.num_axes = 3}, back;
        ms_spec spec = {0};
        memcpy(order.axes, cases[n].order, sizeof cases[n].order);
        ms_spec_set_order(&mesh, &spec, 'x', &order);
        for (int i = 0; i < 3; i++)
            ASSERT_INT(spec.at[i].split_factor, cases[n].factors[i]);
        assert_true(ms_spec_order(&mesh, &spec, 'x', &back));
        for (int i = 0; i < 3; i++)
            ASSERT_INT(back.axes[i], order.axes[i]);
    }
    ms_spec odd = {{strided('x', 6), ms_shard('x'), ms_shard('x')}};
    ms_axis_order order;
    assert_false(ms_spec_order(&mesh, &odd, 'x', &order));
}

/* ---- notations ---- */

typedef struct notation {
    ms_ctx *cx;
    ms_mesh mesh; /* the mesh dp 2, tp 4 */
    ms_global_tensor tensor;
} notation;

static notation notation_make(void)
{
    return (notation){test_cx(), mesh_dp_tp(2, 4), {"w", 2, "hf", {64, 64}, 2}};
}

static void both_notations_are_read_and_written(void **state)
{
    (void)state;
    static const struct {
        const char *text, *mesh, *partition;
    } cases[] = {
        {"R", "R", "P(None,None)"},
        {"P()", "R", "P(None,None)"},
        {"S(f)@tp", "S(f)@tp", "P(None,\"tp\")"},
        {"S(h)@dp, S(f)@tp", "S(h)@dp S(f)@tp", "P(\"dp\",\"tp\")"},
        {"[Replicate, Shard(0)]", "S(h)@tp", "P(\"tp\",None)"},
        {"(Shard(dim=1), Replicate())", "S(f)@dp", "P(None,\"dp\")"},
        {"R@dp S(0)@tp", "S(h)@tp", "P(\"tp\",None)"},
        {"P(\"tp\",None)", "S(h)@tp", "P(\"tp\",None)"},
        {"P('tp')", "S(h)@tp", "P(\"tp\",None)"},
        {"PartitionSpec((\"dp\", \"tp\"), None)", "S(h)@dp S(h)@tp",
         "P((\"dp\",\"tp\"),None)"},
        {"P((\"tp\",\"dp\"),None)", "SS(h,4)@dp S(h)@tp", "P((\"tp\",\"dp\"),None)"},
        {"P(None, ('tp',))", "S(f)@tp", "P(None,\"tp\")"},
        {"[_StridedShard(dim=0, sf=4), Shard(0)]", "SS(h,4)@dp S(h)@tp",
         "P((\"tp\",\"dp\"),None)"},
        {"P@tp", "P@tp", NULL},
        {"P(max)@tp S(h)@dp", "S(h)@dp P(max)@tp", NULL},
        {"[Partial(avg), Partial()]", "P(avg)@dp P@tp", NULL},
        {"SS(h,3)@dp", "SS(h,3)@dp", NULL},
    };
    notation n = notation_make();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ms_spec spec;
        const char *why = NULL;
        ASSERT_OK(ms_spec_read(n.cx, cases[i].text, &n.mesh, &n.tensor, &spec), n.cx);
        ASSERT_TEXT(ms_spec_text(n.cx->arena, &n.mesh, &spec), cases[i].mesh);
        ASSERT_TEXT(ms_spec_partition_text(n.cx->arena, &n.mesh, &n.tensor, &spec, &why),
                    cases[i].partition);
        assert_true((why == NULL) == (cases[i].partition != NULL));
    }
}

static void what_a_notation_cannot_say_is_said(void **state)
{
    (void)state;
    notation n = notation_make();
    ms_arena *arena = n.cx->arena;
    ms_spec spec = {{{MS_PARTIAL_SUM, 0, 0}, ms_shard('h')}};
    const char *why;
    assert_null(ms_spec_partition_text(arena, &n.mesh, &n.tensor, &spec, &why));
    ASSERT_TEXT(
        why, "a PartitionSpec has no word for P@dp: values that are still to be reduced");
    assert_null(ms_spec_needs_strided(arena, &n.mesh, &spec));
    spec = (ms_spec){{strided('h', 3)}};
    assert_null(ms_spec_partition_text(arena, &n.mesh, &n.tensor, &spec, &why));
    ASSERT_TEXT(
        why, "SS(h,3)@dp is no order of axes: its factor is not the product of the sizes "
             "of axes that split dim h after it in the mesh");
    spec = (ms_spec){{strided('h', 4), ms_shard('h')}};
    ASSERT_TEXT(
        ms_spec_needs_strided(arena, &n.mesh, &spec),
        "plain Shards split dim h in the order of the mesh, not in the order (tp, dp): "
        "that takes SS(h,4)@dp");
    n.tensor.size[0] = 10;
    spec = (ms_spec){{ms_shard('h'), ms_shard('h')}};
    assert_null(ms_spec_partition_text(arena, &n.mesh, &n.tensor, &spec, &why));
    ASSERT_TEXT(why, "dim h of 10 over (dp, tp): a PartitionSpec pads to 8 equal tiles, "
                     "successive Shards leave other ranks short");
}

static void wrong_placements_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"S(q)@dp", "w[hf] has no dim q"},
        {"S(2)@dp", "w[hf] has no dim 2"},
        {"S(h)@tq", "the mesh has no axis \"tq\""},
        {"S(h)@tq", "did you mean \"tp\"? The axes are dp, tp"},
        {"S(h)", "expected '@' at its end"},
        {"S(h)@dp S(f)@dp", "axis dp is given twice"},
        {"SS(h)@dp", "expected ',' at \")@dp\""},
        {"SS(h,0)@dp", "\"0\" is no split factor"},
        {"SS(h,99999999)@dp", "the split factor 99999999 of dp is not within 1 to 65536"},
        {"X@dp", "no placement \"X\""},
        {"P(mean)@dp", "no reduction \"mean\": sum, avg, max or min"},
        {"P(max)@dp P@tp", "a max over dp and a sum over tp do not commute"},
        {"[R]", "1 placements for the 2 axes of the mesh"},
        {"[R,R,R]", "3 placements for the 2 axes of the mesh"},
        {"P(\"dp\",None,None)", "more entries than the 2 dims of w[hf]"},
        {"P(\"dp\",\"dp\")", "axis dp is given twice"},
        {"P(\"dp\"", "expected ',' at its end"},
        {"P(\"dp)", "expected an axis that ends in a quote"},
        {"P(\"dp\") x", "expected nothing more at \"x\""},
        {"", "expected a placement at its end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        notation n = notation_make();
        ms_spec spec;
        ASSERT_INT(ms_spec_read(n.cx, cases[i].text, &n.mesh, &n.tensor, &spec),
                   MS_EINPUT);
        const char *messages = test_messages(n.cx);
        if (strstr(messages, cases[i].want) == NULL)
            fail_msg("%s: \"%s\" not in\n%s", cases[i].text, cases[i].want, messages);
    }
}

/* ---- random specs ---- */

/* Random placements: every element is held by exactly the ranks that should replicate
 * it, sizes agree with the index ranges, and text reads back. */
static void random_specs_cover_the_tensor_and_read_back(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_mesh mesh =
        ms_mesh_make((const char *const[]){"a", "b", "c"}, (const long[]){2, 3, 2}, 3);
    for (uint64_t seed = 0; seed < 500; seed++) {
        ms_arena_mark mark = ms_arena_save(cx->arena);
        ms_rng rng = ms_rng_seed(seed);
        ms_global_tensor x = {"x", 2, "ij", {0}, 2};
        ms_spec spec = {0}, back;
        long replicas = 12;
        for (int i = 0; i < 2; i++)
            x.size[i] = 1 + (long)ms_rng_below(&rng, 30);
        for (int i = 0; i < 3; i++) {
            uint64_t draw = ms_rng_below(&rng, 3);
            if (draw == 2)
                continue;
            spec.at[i] = strided(x.dims[draw], (int)ms_rng_below(&rng, 7));
            replicas /= mesh.axes[i].size;
        }
        long held_elements = 0;
        for (long rank = 0; rank < 12; rank++) {
            held_elements += local_size(&mesh, &spec, &x, 0, rank) *
                             local_size(&mesh, &spec, &x, 1, rank);
        }
        ASSERT_INT(held_elements, replicas * x.size[0] * x.size[1]);
        ASSERT_OK(
            ms_spec_read(cx, ms_spec_text(cx->arena, &mesh, &spec), &mesh, &x, &back),
            cx);
        assert_true(ms_spec_equal(&mesh, &spec, &back));
        const char *why,
            *text = ms_spec_partition_text(cx->arena, &mesh, &x, &spec, &why);
        if (text != NULL) {
            ASSERT_OK(ms_spec_read(cx, text, &mesh, &x, &back), cx);
            assert_true(ms_spec_equal(&mesh, &spec, &back));
        }
        ms_arena_rewind(cx->arena, mark);
    }
}

/* A tensor cut into the ranks' parts, even partial sums, is assembled to the whole
 * again. */
static void cut_tensors_gather_to_the_whole(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    notation n = notation_make();
    static const char *const texts[] = {"R",
                                        "S(h)@dp P@tp",
                                        "P(avg)@dp P@tp",
                                        "P(min)@dp S(f)@tp",
                                        "SS(h,3)@dp S(h)@tp",
                                        "P(max)@dp P(max)@tp"};
    n.tensor.size[0] = 7;
    n.tensor.size[1] = 5;
    double whole[35];
    for (int i = 0; i < 35; i++)
        whole[i] = i - 12.0;
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        ms_rng rng = ms_rng_seed(t);
        ms_spec spec;
        ASSERT_OK(ms_spec_read(cx, texts[t], &n.mesh, &n.tensor, &spec), cx);
        ms_sharded_tensor cut =
            ms_sharded_tensor_cut(cx->arena, &n.mesh, &n.tensor, &spec, whole, &rng);
        double *back = ms_sharded_tensor_gather(cx->arena, &cut);
        for (int i = 0; i < 35; i++)
            ASSERT_NEAR(back[i], whole[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strided_shards_interleave_as_in_pytorch),
        cmocka_unit_test(uneven_shards_are_those_of_torch_chunk),
        cmocka_unit_test(uneven_strided_shards_cut_every_piece),
        cmocka_unit_test(the_largest_part_is_found_wherever_it_is),
        cmocka_unit_test(factors_say_the_order_of_axes),
        cmocka_unit_test(both_notations_are_read_and_written),
        cmocka_unit_test(what_a_notation_cannot_say_is_said),
        cmocka_unit_test(wrong_placements_are_refused),
        cmocka_unit_test(random_specs_cover_the_tensor_and_read_back),
        cmocka_unit_test(cut_tensors_gather_to_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
