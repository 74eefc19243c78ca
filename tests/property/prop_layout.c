/* Laws of the layout algebra (shapes with strides, as in CuTe) on random layouts, each
 * checked by comparing the values one by one. */
#include "base/rng.h"
#include "topo/layout.h"

#include "tests/support/layouts.h"
#include "tests/test.h"

/* ---- random layouts ---- */

#define MAX_SIZES 5

static long below(ms_rng *rng, long bound)
{
    return (long)ms_rng_below(rng, (uint64_t)bound);
}

/* A layout of the modes, nested in random parentheses. */
static ms_layout nest(ms_ctx *cx, ms_rng *rng, const ms_layout *modes, int num_modes)
{
    ms_layout groups[MAX_SIZES], out;
    int num_groups = 0;
    for (int first = 0, last; first < num_modes; first = last) {
        last = first + 1 + (int)below(rng, num_modes - first);
        bool single = last == first + 1 && below(rng, 4) > 0;
        groups[num_groups++] = last == first + num_modes || single
                                   ? modes[first]
                                   : nest(cx, rng, &modes[first], last - first);
        if (last == first + num_modes)
            last = first + 1;
    }
    if (num_groups == 1 && below(rng, 2) == 0)
        return groups[0];
    ASSERT_OK(ms_layout_join(cx, groups, num_groups, &out), cx);
    return out;
}

/* A random layout of any sizes and strides: with overlap, zero strides and sizes of
 * one. */
static ms_layout any_layout(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    ms_layout modes[MAX_SIZES];
    int num_modes = 1 + (int)below(rng, 4);
    for (int i = 0; i < num_modes; i++)
        modes[i] = ms_layout_make(order, 1 + below(rng, 5), below(rng, 13));
    return nest(cx, rng, modes, num_modes);
}

/* A random layout whose modes do not overlap. Starting with the finest mode, each mode's
 * stride is 1 to `most_gap` times the size x stride of the mode before. The modes stand
 * in random order. */
static ms_layout apart_layout(ms_ctx *cx, ms_rng *rng, ms_layout_order order,
                              long most_gap)
{
    ms_layout modes[MAX_SIZES];
    int num_modes = 1 + (int)below(rng, 4);
    long end = 1;
    for (int i = 0; i < num_modes; i++) {
        long size = 1 + below(rng, 4), stride = end * (1 + below(rng, most_gap));
        int place = (int)below(rng, i + 1);
        modes[i] = modes[place];
        modes[place] = ms_layout_make(order, size, stride);
        end = size * stride;
    }
    return nest(cx, rng, modes, num_modes);
}

static ms_layout some_layout(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    long kind = below(rng, 3);
    return kind == 0 ? any_layout(cx, rng, order)
                     : apart_layout(cx, rng, order, kind == 1 ? 1 : 3);
}

/* A law checks itself on random layouts of the given mode order, and returns whether the
 * drawn layouts satisfied its conditions. run_law counts the cases that did, in both mode
 * orders. */
typedef bool law(ms_ctx *cx, ms_rng *rng, ms_layout_order order);

static long run_law(law *holds, long num_cases)
{
    long said = 0;
    ms_rng rng = ms_rng_seed(20);
    for (long i = 0; i < num_cases; i++) {
        ms_arena *arena = ms_arena_open();
        ms_ctx cx = {.arena = arena};
        said += holds(&cx, &rng, i % 2 == 0 ? MS_LEXICOGRAPHIC : MS_COLEXICOGRAPHIC);
        ms_arena_close(arena);
    }
    return said;
}

static void expect_same_function(ms_layout a, ms_layout b)
{
    ASSERT_INT(a.size, b.size);
    for (long i = 0; i < a.size; i++)
        ASSERT_INT(ms_layout_at(a, i), ms_layout_at(b, i));
}

static void expect_same_text(ms_ctx *cx, ms_layout a, ms_layout b)
{
    ASSERT_TEXT(ms_layout_text(cx->arena, a), ms_layout_text(cx->arena, b));
}

/* ---- text, order, coalescing ---- */

static bool text_holds(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    ms_layout again, layout = some_layout(cx, rng, order);
    ASSERT_OK(ms_layout_parse(cx, ms_layout_text(cx->arena, layout), order, &again), cx);
    expect_same_text(cx, again, layout);
    expect_same_function(again, layout);
    ASSERT_INT(ms_layout_depth(again), ms_layout_depth(layout));
    ASSERT_INT(ms_layout_rank(again), ms_layout_rank(layout));
    return true;
}

static void text_reads_back(void **state)
{
    (void)state;
    ASSERT_INT(run_law(text_holds, 4000), 4000);
}

static bool coalescing_holds(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    ms_layout layout = some_layout(cx, rng, order);
    ms_layout coalesced = ms_layout_coalesce(cx->arena, layout);
    expect_same_function(coalesced, layout);
    expect_same_text(cx, ms_layout_coalesce(cx->arena, coalesced), coalesced);
    assert_true(ms_layout_depth(coalesced) <= 1);
    return ms_layout_rank(coalesced) < ms_layout_rank(layout);
}

static void coalescing_keeps_the_function(void **state)
{
    (void)state;
    assert_true(run_law(coalescing_holds, 6000) > 500);
}

static bool coordinates_hold(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    ms_layout layout = some_layout(cx, rng, order);
    int rank = ms_layout_rank(layout);
    for (long index = 0; index < layout.size; index++) {
        long coordinate[MAX_SIZES], left = index;
        for (int i = 0; i < rank; i++) {
            int mode = order == MS_LEXICOGRAPHIC ? rank - 1 - i : i;
            coordinate[mode] = left % ms_layout_mode(layout, mode).size;
            left /= ms_layout_mode(layout, mode).size;
        }
        ASSERT_INT(ms_layout_at(layout, index), test_layout_at(layout, coordinate));
    }
    return rank > 1;
}

static void an_index_is_its_coordinate(void **state)
{
    (void)state;
    assert_true(run_law(coordinates_hold, 2000) > 1000);
}

typedef ms_status binary(ms_ctx *cx, ms_layout a, ms_layout b, ms_layout *out);

static ms_status complement_of_size(ms_ctx *cx, ms_layout a, ms_layout b, ms_layout *out)
{
    return ms_layout_complement(cx, a, b.size, out);
}

/* Every operation on layouts with reversed mode order gives the reversed result, or
 * both are refused. */
static bool reversal_holds(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    static binary *const operations[] = {ms_layout_compose, ms_layout_divide,
                                         ms_layout_product, complement_of_size};
    ms_arena *arena = cx->arena;
    ms_layout a = some_layout(cx, rng, order), b = some_layout(cx, rng, order);
    ms_layout ra = test_layout_reverse(arena, a), rb = test_layout_reverse(arena, b);
    expect_same_function(ra, a);
    expect_same_text(cx, test_layout_reverse(arena, ra), a);
    expect_same_text(cx, test_layout_reverse(arena, ms_layout_coalesce(arena, ra)),
                     ms_layout_coalesce(arena, a));
    expect_same_text(cx, test_layout_reverse(arena, ms_layout_right_inverse(arena, ra)),
                     ms_layout_right_inverse(arena, a));
    int defined = 0;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        ms_layout got, rgot;
        ms_status status = operations[i](cx, a, b, &got);
        ASSERT_INT(operations[i](cx, ra, rb, &rgot), status);
        if (status != MS_OK)
            continue;
        expect_same_text(cx, test_layout_reverse(arena, rgot), got);
        defined++;
    }
    return defined > 1;
}

static void lexicographic_is_colexicographic_reversed(void **state)
{
    (void)state;
    assert_true(run_law(reversal_holds, 6000) > 1000);
}

/* ---- composition ---- */

static bool composition_holds(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    ms_layout a = some_layout(cx, rng, order), b = some_layout(cx, rng, order), got;
    if (ms_layout_compose(cx, a, b, &got) != MS_OK)
        return false;
    ASSERT_INT(got.size, b.size);
    ASSERT_INT(ms_layout_rank(got) >= ms_layout_rank(b), 1);
    for (long i = 0; i < b.size; i++)
        ASSERT_INT(ms_layout_at(got, i), ms_layout_at(a, ms_layout_at(b, i)));
    for (int i = 0; i < b.num_modes; i++)
        ASSERT_INT(ms_layout_mode(got, i).size, ms_layout_mode(b, i).size);
    return b.size > 1;
}

static void composition_is_one_function_after_the_other(void **state)
{
    (void)state;
    assert_true(run_law(composition_holds, 20000) > 2000);
}

/* Composing a layout with n:1 gives the layout's first n elements. This is refused
 * exactly where n is no multiple of the number of elements in the faster modes, those
 * before the mode in which the n elements end. */
static bool refusal_holds(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    ms_layout a = some_layout(cx, rng, order), got;
    ms_layout b = ms_layout_make(order, 1 + below(rng, a.size), 1);
    bool defined = ms_layout_compose(cx, a, b, &got) == MS_OK;
    ms_layout flat = ms_layout_coalesce(cx->arena, a);
    /* number of elements in the modes that the n elements cover whole */
    long covered = 1;
    for (int i = 0; i < ms_layout_rank(flat) && b.size % covered == 0; i++) {
        int last = ms_layout_rank(flat) - 1 - i;
        long size = ms_layout_mode(flat, order == MS_LEXICOGRAPHIC ? last : i).size;
        if (b.size <= covered * size)
            break;
        covered *= size;
    }
    ASSERT_INT(defined, b.size % covered == 0);
    return !defined;
}

static void a_prefix_is_a_layout_where_it_fills_the_faster_modes(void **state)
{
    (void)state;
    assert_true(run_law(refusal_holds, 4000) > 300);
}

static bool associativity_holds(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    ms_layout a = some_layout(cx, rng, order), b = some_layout(cx, rng, order);
    ms_layout c = some_layout(cx, rng, order), ab, bc, left, right;
    if (ms_layout_compose(cx, a, b, &ab) != MS_OK ||
        ms_layout_compose(cx, b, c, &bc) != MS_OK ||
        ms_layout_compose(cx, ab, c, &left) != MS_OK ||
        ms_layout_compose(cx, a, bc, &right) != MS_OK)
        return false;
    expect_same_function(left, right);
    return c.size > 1;
}

static void composition_is_associative(void **state)
{
    (void)state;
    assert_true(run_law(associativity_holds, 20000) > 200);
}

/* ---- complement, division, product, inverse ---- */

/* How often the sums a(i) + b(j) give each value below `limit`; all sums are below it. */
static int *count_sums(ms_ctx *cx, ms_layout a, ms_layout b, long limit)
{
    int *counts = MS_NEW_ARRAY(cx->arena, limit, int);
    for (long i = 0; i < a.size; i++)
        for (long j = 0; j < b.size; j++) {
            long sum = ms_layout_at(a, i) + ms_layout_at(b, j);
            assert_true(sum < limit);
            counts[sum]++;
        }
    return counts;
}

/* Where the coarsest mode of the layout ends: copies of the layout that far apart do
 * not overlap. */
static long end_of(ms_ctx *cx, ms_layout a)
{
    ms_layout flat = ms_layout_coalesce(cx->arena, a);
    long end = 1;
    for (int i = 0; i < ms_layout_rank(flat) && flat.size > 1; i++) {
        ms_layout mode = ms_layout_mode(flat, i);
        end = mode.size * mode.stride > end ? mode.size * mode.stride : end;
    }
    return end;
}

static bool complement_holds(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    ms_layout a = some_layout(cx, rng, order), rest;
    long limit = 1 + below(rng, 400);
    if (ms_layout_complement(cx, a, limit, &rest) != MS_OK)
        return false;
    for (long i = 1; i < rest.size; i++)
        assert_true(ms_layout_at(rest, i) > ms_layout_at(rest, i - 1));
    long reach = a.size * rest.size;
    assert_true(reach >= limit);
    /* one copy of `a` fewer would leave `a` and its complement short of `limit` */
    assert_true(reach - end_of(cx, a) < limit);
    int *counts = count_sums(cx, a, rest, reach);
    for (long i = 0; i < reach; i++)
        ASSERT_INT(counts[i], 1);
    return a.size > 1 && rest.size > 1;
}

static void a_layout_and_its_complement_cover_each_value_once(void **state)
{
    (void)state;
    assert_true(run_law(complement_holds, 4000) > 1000);
}

/* Whether each mode, in any order, begins at a multiple of where the finer modes end:
 * a complement needs that. */
static bool begins_where_others_end(ms_ctx *cx, ms_layout a)
{
    ms_layout flat = ms_layout_coalesce(cx->arena, a);
    for (int i = 0; i < ms_layout_rank(flat) && flat.size > 1; i++) {
        ms_layout mode = ms_layout_mode(flat, i);
        for (int j = 0; j < ms_layout_rank(flat); j++) {
            ms_layout finer = ms_layout_mode(flat, j);
            bool is_finer =
                finer.stride < mode.stride || (finer.stride == mode.stride && j < i);
            if (mode.stride == 0 || finer.stride == 0 ||
                (is_finer && mode.stride % (finer.size * finer.stride) != 0))
                return false;
        }
    }
    return true;
}

static bool admission_holds(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    ms_layout rest, a = any_layout(cx, rng, order);
    bool defined = ms_layout_complement(cx, a, 24, &rest) == MS_OK;
    ASSERT_INT(defined, begins_where_others_end(cx, a));
    return defined && a.size > 1;
}

static void a_complement_needs_modes_that_nest(void **state)
{
    (void)state;
    assert_true(run_law(admission_holds, 10000) > 1000);
}

static ms_layout tile_of(ms_layout pair)
{
    return ms_layout_mode(pair, pair.order == MS_LEXICOGRAPHIC ? 1 : 0);
}

static ms_layout tiles_of(ms_layout pair)
{
    return ms_layout_mode(pair, pair.order == MS_LEXICOGRAPHIC ? 0 : 1);
}

static int compare(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static long *sorted_values(ms_ctx *cx, ms_layout layout)
{
    long *values = ms_layout_values(cx->arena, layout);
    qsort(values, (size_t)layout.size, sizeof *values, compare);
    return values;
}

static bool division_holds(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    ms_layout a = some_layout(cx, rng, order), b = apart_layout(cx, rng, order, 2), got;
    if (ms_layout_divide(cx, a, b, &got) != MS_OK)
        return false;
    ASSERT_INT(ms_layout_rank(got), 2);
    ASSERT_INT(got.size, a.size);
    const long *before = sorted_values(cx, a), *after = sorted_values(cx, got);
    for (long i = 0; i < a.size; i++)
        ASSERT_INT(after[i], before[i]);
    ms_layout tile = tile_of(got);
    ASSERT_INT(tile.size, b.size);
    for (long i = 0; i < b.size; i++)
        ASSERT_INT(ms_layout_at(tile, i), ms_layout_at(a, ms_layout_at(b, i)));
    return b.size > 1 && b.size < a.size;
}

static void division_permutes_the_values(void **state)
{
    (void)state;
    assert_true(run_law(division_holds, 20000) > 300);
}

static bool product_holds(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    ms_layout a = apart_layout(cx, rng, order, 3), b = apart_layout(cx, rng, order, 2),
              got;
    if (ms_layout_product(cx, a, b, &got) != MS_OK)
        return false;
    ASSERT_INT(ms_layout_rank(got), 2);
    expect_same_text(cx, tile_of(got), a);
    ms_layout offsets, copies = tiles_of(got);
    ASSERT_INT(copies.size, b.size);
    ASSERT_OK(ms_layout_complement(cx, a, a.size * ms_layout_cosize(b), &offsets), cx);
    for (long i = 0; i < b.size; i++)
        ASSERT_INT(ms_layout_at(copies, i), ms_layout_at(offsets, ms_layout_at(b, i)));
    const int *counts = count_sums(cx, a, copies, ms_layout_cosize(got));
    for (long i = 0; i < ms_layout_cosize(got); i++)
        assert_true(counts[i] <= 1);
    return a.size > 1 && b.size > 1;
}

static void copies_of_a_product_are_disjoint(void **state)
{
    (void)state;
    assert_true(run_law(product_holds, 4000) > 1000);
}

static bool inverse_holds(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    ms_layout a = some_layout(cx, rng, order);
    ms_layout inverse = ms_layout_right_inverse(cx->arena, a);
    for (long i = 0; i < inverse.size; i++)
        ASSERT_INT(ms_layout_at(a, ms_layout_at(inverse, i)), i);
    /* a layout that permutes 0 .. size - 1 has an inverse of the same size */
    if (ms_layout_cosize(a) == a.size && ms_layout_check_injective(cx, a) == MS_OK)
        ASSERT_INT(inverse.size, a.size);
    return inverse.size > 1;
}

static void the_right_inverse_is_undone(void **state)
{
    (void)state;
    assert_true(run_law(inverse_holds, 6000) > 2000);
}

static bool overlap_holds(ms_ctx *cx, ms_rng *rng, ms_layout_order order)
{
    ms_layout a = some_layout(cx, rng, order);
    int *counts = count_sums(cx, a, ms_layout_make(order, 1, 0), ms_layout_cosize(a));
    bool overlaps = false;
    for (long i = 0; i < ms_layout_cosize(a); i++)
        overlaps |= counts[i] > 1;
    ASSERT_INT(ms_layout_check_injective(cx, a), overlaps ? MS_EINPUT : MS_OK);
    return overlaps;
}

static void overlap_is_found_exactly(void **state)
{
    (void)state;
    long overlaps = run_law(overlap_holds, 4000);
    assert_true(overlaps > 500 && overlaps < 3500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_reads_back),
        cmocka_unit_test(coalescing_keeps_the_function),
        cmocka_unit_test(an_index_is_its_coordinate),
        cmocka_unit_test(lexicographic_is_colexicographic_reversed),
        cmocka_unit_test(composition_is_one_function_after_the_other),
        cmocka_unit_test(a_prefix_is_a_layout_where_it_fills_the_faster_modes),
        cmocka_unit_test(composition_is_associative),
        cmocka_unit_test(a_layout_and_its_complement_cover_each_value_once),
        cmocka_unit_test(a_complement_needs_modes_that_nest),
        cmocka_unit_test(division_permutes_the_values),
        cmocka_unit_test(copies_of_a_product_are_disjoint),
        cmocka_unit_test(the_right_inverse_is_undone),
        cmocka_unit_test(overlap_is_found_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
