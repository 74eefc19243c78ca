/* The layout algebra (shapes with strides) against published results: NVIDIA/cutlass
 * media/docs/cpp/cute 01_layout.md and 02_layout_algebra.md (first mode fastest);
 * PyTorch torch/distributed/_mesh_layout.py and test/distributed/test_device_mesh.py
 * (last mode fastest). */
#include "topo/layout.h"

#include "tests/support/layouts.h"
#include "tests/test.h"

#include <limits.h>

static ms_layout read_in(ms_ctx *cx, const char *text, ms_layout_order order)
{
    ms_layout layout;
    ASSERT_OK(ms_layout_parse(cx, text, order, &layout), cx);
    return layout;
}

static ms_layout cute(ms_ctx *cx, const char *text)
{
    return read_in(cx, text, MS_COLEXICOGRAPHIC);
}

static ms_layout torch(ms_ctx *cx, const char *text)
{
    return read_in(cx, text, MS_LEXICOGRAPHIC);
}

static void expect_text(ms_ctx *cx, ms_layout got, const char *want)
{
    ASSERT_TEXT(ms_layout_text(cx->arena, got), want);
}

static void expect_values(ms_ctx *cx, ms_layout layout, const long *want, long num_want)
{
    ASSERT_INT(layout.size, num_want);
    long *values = ms_layout_values(cx->arena, layout);
    for (long i = 0; i < num_want; i++)
        ASSERT_INT(values[i], want[i]);
}

/* ---- the function ---- */

static void a_layout_is_a_function_of_index_and_coordinate(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_layout layout = cute(cx, "(2,(2,2)):(4,(2,1))");
    expect_values(cx, layout, (const long[]){0, 4, 2, 6, 1, 5, 3, 7}, 8);
    static const long table[2][4] = {{0, 2, 1, 3}, {4, 6, 5, 7}};
    for (long i = 0; i < 2; i++)
        for (long j = 0; j < 4; j++)
            ASSERT_INT(test_layout_at(layout, (const long[]){i, j}), table[i][j]);
    ASSERT_INT(ms_layout_rank(layout), 2);
    ASSERT_INT(ms_layout_depth(layout), 2);
    ASSERT_INT(ms_layout_cosize(layout), 8);
    expect_text(cx, ms_layout_mode(layout, 1), "(2,2):(2,1)");
}

static void a_single_mode_has_rank_one_and_depth_zero(void **state)
{
    (void)state;
    ms_layout mode = ms_layout_make(MS_LEXICOGRAPHIC, 5, 3);
    ASSERT_INT(ms_layout_rank(mode), 1);
    ASSERT_INT(ms_layout_depth(mode), 0);
    ASSERT_INT(ms_layout_cosize(mode), 13);
    ASSERT_INT(ms_layout_at(ms_layout_mode(mode, 0), 4), 12);
    ASSERT_INT(test_layout_at(mode, (const long[]){2}), 6);
}

static void the_last_mode_is_fastest_in_pytorchs_order(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    expect_values(cx, torch(cx, "(2,3):(1,2)"), (const long[]){0, 2, 4, 1, 3, 5}, 6);
    expect_values(cx, cute(cx, "(2,3):(1,2)"), (const long[]){0, 1, 2, 3, 4, 5}, 6);
    ms_layout reversed = test_layout_reverse(cx->arena, cute(cx, "(2,(2,3)):(4,(2,1))"));
    ASSERT_INT(reversed.order, MS_LEXICOGRAPHIC);
    expect_text(cx, reversed, "((3,2),2):((1,2),4)");
}

static void a_shape_alone_is_compact(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    /* the strides of LayoutLeft in CuTe: the first mode is fastest */
    expect_text(cx, cute(cx, "(2,(2,3))"), "(2,(2,3)):(1,(2,4))");
    /* the strides of LayoutRight in CuTe: the last mode is fastest */
    expect_text(cx, torch(cx, "(2,(2,3))"), "(2,(2,3)):(6,(3,1))");
    expect_text(cx, torch(cx, " 16 "), "16:1");
}

/* ---- algebra, co-lexicographic as published, and the same reversed ---- */

static ms_layout reverse(ms_ctx *cx, ms_layout layout)
{
    return test_layout_reverse(cx->arena, layout);
}

typedef ms_status binary(ms_ctx *cx, ms_layout a, ms_layout b, ms_layout *out);

static void expect_binary(ms_ctx *cx, binary *operation, const char *a, const char *b,
                          const char *want)
{
    ms_layout x = cute(cx, a), y = cute(cx, b), got;
    ASSERT_OK(operation(cx, x, y, &got), cx);
    expect_text(cx, got, want);
    ASSERT_OK(operation(cx, reverse(cx, x), reverse(cx, y), &got), cx);
    ASSERT_INT(got.order, MS_LEXICOGRAPHIC);
    expect_text(cx, reverse(cx, got), want);
}

static void coalescing_merges_what_continues(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_layout layout = cute(cx, "(2,(1,6)):(1,(6,2))");
    expect_text(cx, ms_layout_coalesce(cx->arena, layout), "12:1");
    layout = torch(cx, "((6,1),2):((2,6),1)");
    expect_text(cx, ms_layout_coalesce(cx->arena, layout), "12:1");
    expect_text(cx, ms_layout_coalesce(cx->arena, cute(cx, "(1,1):(7,8)")), "1:0");
    expect_text(cx, ms_layout_coalesce(cx->arena, torch(cx, "(2,3):(1,2)")),
                "(2,3):(1,2)");
}

static void composition_gives_cutes_answers(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    expect_binary(cx, ms_layout_compose, "(6,2):(8,2)", "(4,3):(3,1)",
                  "((2,2),3):((24,2),8)");
    expect_binary(cx, ms_layout_compose, "20:2", "(5,4):(4,1)", "(5,4):(8,2)");
    expect_binary(cx, ms_layout_compose, "(10,2):(16,4)", "(5,4):(1,5)",
                  "(5,(2,2)):(16,(80,4))");
    expect_binary(cx, ms_layout_compose, "8:3", "(2,1,3):(1,9,0)", "(2,1,3):(3,0,0)");
}

static void complements_fill_what_is_left_out(void **state)
{
    (void)state;
    static const char *const want[][2] = {
        {"4:1", "6:4"},         {"6:4", "4:1"},         {"(4,6):(1,4)", "1:0"},
        {"4:2", "(2,3):(1,8)"}, {"(2,4):(1,6)", "3:2"}, {"(2,2):(1,6)", "(3,2):(2,12)"},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        ms_layout got, layout = cute(cx, want[i][0]);
        ASSERT_OK(ms_layout_complement(cx, layout, 24, &got), cx);
        expect_text(cx, got, want[i][1]);
        ASSERT_OK(ms_layout_complement(cx, reverse(cx, layout), 24, &got), cx);
        expect_text(cx, reverse(cx, got), want[i][1]);
    }
}

static void division_and_product_give_cutes_answers(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    expect_binary(cx, ms_layout_divide, "(4,2,3):(2,1,8)", "4:2",
                  "((2,2),(2,3)):((4,1),(2,8))");
    expect_binary(cx, ms_layout_product, "(2,2):(4,1)", "6:1",
                  "((2,2),(2,3)):((4,1),(2,8))");
}

static void the_right_inverse_finds_the_index_of_a_value(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_layout inverse = ms_layout_right_inverse(cx->arena, cute(cx, "(4,8):(8,1)"));
    expect_text(cx, inverse, "(8,4):(4,1)");
    inverse = ms_layout_right_inverse(cx->arena, torch(cx, "(8,4):(1,8)"));
    expect_text(cx, inverse, "(4,8):(1,4)");
    inverse = ms_layout_right_inverse(cx->arena, cute(cx, "(4,2):(1,8)"));
    expect_text(cx, inverse, "4:1");
    inverse = ms_layout_right_inverse(cx->arena, cute(cx, "4:2"));
    expect_text(cx, inverse, "1:0");
}

static void text_may_hold_operations(void **state)
{
    (void)state;
    static const char *const want[][2] = {
        {"(6,2):(8,2) o (4,3):(3,1)", "((2,2),3):((24,2),8)"},
        {"coalesce((2,(1,6)):(1,(6,2)))", "12:1"},
        {"complement(4:2,24)", "(2,3):(1,8)"},
        {"divide ( (4,2,3):(2,1,8), 4:2 )", "((2,2),(2,3)):((4,1),(2,8))"},
        {"product((2,2):(4,1),6:1)", "((2,2),(2,3)):((4,1),(2,8))"},
        {"inverse((4,8):(8,1))", "(8,4):(4,1)"},
        {"coalesce((4,8):(8,1)o inverse((4,8):(8,1)))", "32:1"},
        {"8:3 o 4:2 o 2:1", "2:6"},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        expect_text(cx, cute(cx, want[i][0]), want[i][1]);
}

/* ---- ranks of a mesh ---- */

static void overlap_is_told_with_the_value(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_OK(ms_layout_check_injective(cx, torch(cx, "(2,3):(3,1)")), cx);
    ASSERT_OK(ms_layout_check_injective(cx, torch(cx, "(2,3,1):(1,2,0)")), cx);
    ASSERT_OK(ms_layout_check_injective(cx, torch(cx, "(2,2,2):(3,4,5)")), cx);
    ASSERT_INT(ms_layout_check_injective(cx, torch(cx, "(2,3):(2,1)")), MS_EINPUT);
    ASSERT_INT(ms_layout_check_injective(cx, torch(cx, "(4,2):(1,1)")), MS_EINPUT);
    ASSERT_INT(ms_layout_check_injective(cx, torch(cx, "2:0")), MS_EINPUT);
    ASSERT_INT(ms_layout_check_injective(cx, torch(cx, "(9000000,2):(2,3)")), MS_EINPUT);
    const char *messages = test_messages(cx);
    assert_non_null(strstr(messages, "layout (2,3):(2,1) overlaps: it gives 2 twice"));
    assert_non_null(strstr(messages, "layout (4,2):(1,1) overlaps: it gives 1 twice"));
    assert_non_null(strstr(messages, "layout 2:0 overlaps: it gives 0 twice"));
    assert_non_null(strstr(messages, "interlock and reach beyond 4194304"));
}

/* Divides the ranks of a world by the sub-layout of one group: the value at (k, i) is
 * rank i of group k. */
static void expect_groups(const char *layout, long num_ranks, const char *want_text,
                          const long *want_values)
{
    ms_ctx *cx = test_cx();
    ms_layout groups, world = ms_layout_make(MS_LEXICOGRAPHIC, num_ranks, 1);
    ASSERT_OK(ms_layout_divide(cx, world, torch(cx, layout), &groups), cx);
    expect_text(cx, groups, want_text);
    expect_values(cx, groups, want_values, num_ranks);
}

static void groups_are_the_division_of_the_world(void **state)
{
    (void)state;
    static const long four[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    expect_groups("4:1", 16, "(4,4):(4,1)", four);
    static const long apart[] = {0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15};
    expect_groups("2:4", 16, "((2,4),2):((8,1),4)", apart);
    static const long flattened[] = {0, 1, 4, 5, 2, 3, 6, 7};
    expect_groups("(2,2):(4,1)", 8, "(2,(2,2)):(2,(4,1))", flattened);
}

/* ---- errors ---- */

static void expect_refused(ms_status status, ms_ctx *cx, const char *want)
{
    ASSERT_INT(status, MS_EINPUT);
    ASSERT_TEXT(cx->last->message, want);
}

static void undefined_operations_say_why(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_layout got, a = cute(cx, "(6,2):(8,2)");
    expect_refused(ms_layout_compose(cx, a, cute(cx, "3:4"), &got), cx,
                   "layout (6,2):(8,2) composed with 3:4 is not defined: mode 3:4 of the "
                   "second steps unevenly through the first");
    expect_refused(
        ms_layout_compose(cx, a, cute(cx, "(6,2):(1,3)"), &got), cx,
        "layout (6,2):(8,2) composed with (6,2):(1,3) is not defined: mode 2:3 "
        "of the second carries from one mode of the first to the next");
    expect_refused(
        ms_layout_compose(cx, a, cute(cx, "13:1"), &got), cx,
        "layout (6,2):(8,2) composed with 13:1 is not defined: mode 13:1 of the "
        "second steps unevenly through the first");
    expect_refused(
        ms_layout_compose(cx, a, cute(cx, "18:1"), &got), cx,
        "layout (6,2):(8,2) composed with 18:1 is not defined: mode 18:1 of the "
        "second reaches beyond the first");
    expect_refused(ms_layout_compose(cx, a, cute(cx, "2:12"), &got), cx,
                   "layout (6,2):(8,2) composed with 2:12 is not defined: mode 2:12 of "
                   "the second reaches beyond the first");
    expect_refused(ms_layout_complement(cx, cute(cx, "(2,2):(2,3)"), 24, &got), cx,
                   "layout (2,2):(2,3) has no complement: stride 3 is no multiple of 4, "
                   "where its finer modes end");
    expect_refused(ms_layout_divide(cx, cute(cx, "10:1"), cute(cx, "4:1"), &got), cx,
                   "tiles 4:1 do not fill layout 10:1: 10 elements are no multiple");
    expect_refused(
        ms_layout_complement(cx, cute(cx, "4:0"), 24, &got), cx,
        "layout 4:0 has no complement: stride 0 is no multiple of 1, where its "
        "finer modes end");
}

static void nothing_overflows(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_layout got, huge = ms_layout_make(MS_LEXICOGRAPHIC, LONG_MAX, 1);
    ms_layout far = ms_layout_make(MS_LEXICOGRAPHIC, 2, LONG_MAX / 2);
    const ms_layout pair[] = {huge, far}, three[] = {far, far, far};
    ASSERT_INT(ms_layout_join(cx, pair, 2, &got), MS_EINPUT);
    ASSERT_INT(ms_layout_join(cx, three, 3, &got), MS_EINPUT);
    ASSERT_INT(ms_layout_product(cx, huge, far, &got), MS_EINPUT);
    ASSERT_INT(ms_layout_complement(cx, far, LONG_MAX, &got), MS_EINPUT);
    ASSERT_OK(ms_layout_complement(cx, huge, LONG_MAX, &got), cx);
    expect_text(cx, got, "1:0");
    ms_layout spread = ms_layout_make(MS_LEXICOGRAPHIC, 5, LONG_MAX / 5),
              three_of = ms_layout_make(MS_LEXICOGRAPHIC, 3, 2);
    ASSERT_INT(ms_layout_compose(cx, spread, three_of, &got), MS_EINPUT);
    ASSERT_TEXT(cx->last->message + strlen(cx->last->message) - 23,
                "has values out of range");
}

static void wrong_text_is_told_by_column(void **state)
{
    (void)state;
    static const char *const want[][2] = {
        {"", "column 1: expected a size or '(', found the end in layout \"\""},
        {"()", "column 2: expected a size or '(', found ')' in layout \"()\""},
        {"(2,3", "column 5: expected ',' or ')', found the end in layout \"(2,3\""},
        {"2;1", "column 2: expected ':', found ';' in layout \"2;1\""},
        {"4:1 o", "column 6: expected a size or '(', found the end in layout \"4:1 o\""},
        {"invert(4)", "column 1: no operation is called \"invert\" in layout "
                      "\"invert(4)\""},
        {"divide(4:1)", "column 11: expected ',', found ')' in layout \"divide(4:1)\""},
        {"2:1 x", "column 5: expected the end, found 'x' in layout \"2:1 x\""},
        {"(2,3):4", "column 7: expected '(', found '4' in layout \"(2,3):4\""},
        {"(2,3):(4)", "column 9: expected ',', found ')' in layout \"(2,3):(4)\""},
        {"(2,3):(4,1,1)",
         "column 11: expected ')', found ',' in layout \"(2,3):(4,1,1)\""},
        {"2:(1)", "column 3: expected a stride, as the shape has a size, found '(' in "
                  "layout \"2:(1)\""},
        {"(2,0):(1,2)", "column 4: a size must be at least 1 in layout \"(2,0):(1,2)\""},
        {"-2:1", "column 1: expected a size or '(', found '-' in layout \"-2:1\""},
        {"2\u00d73", "column 2: expected ':', found '\u00d7' in layout \"2\u00d73\""},
        {"9223372036854775808:1",
         "column 1: number out of range in layout \"9223372036854775808:1\""},
        {"4294967296:4294967296",
         "column 12: size times stride out of range in layout \"4294967296:4294967296\""},
        {"(4294967296,4294967296)",
         "column 24: size times stride out of range in layout \"(4294967296,4294967296)\""},
        {"(4294967296,4294967296):(0,0)",
         "a layout of more than 9223372036854775807 elements"},
    };
    ms_ctx *cx = test_cx();
    ms_layout got;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        expect_refused(ms_layout_parse(cx, want[i][0], MS_LEXICOGRAPHIC, &got), cx,
                       want[i][1]);
}

static const char *repeated(ms_ctx *cx, const char *text, int times)
{
    const char *all = "";
    for (int i = 0; i < times; i++)
        all = ms_arena_printf(cx->arena, "%s%s", all, text);
    return all;
}

static void text_has_bounds(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *deep =
        ms_arena_printf(cx->arena, "%s2%s", repeated(cx, "(", 16), repeated(cx, ")", 16));
    ASSERT_INT(ms_layout_depth(torch(cx, deep)), 16);
    ms_layout got,
        long_one = torch(cx, ms_arena_printf(cx->arena, "(%s1)", repeated(cx, "1,", 63)));
    ASSERT_INT(ms_layout_rank(long_one), 64);
    deep = ms_arena_printf(cx->arena, "(%s)", deep);
    ASSERT_INT(ms_layout_parse(cx, deep, MS_LEXICOGRAPHIC, &got), MS_EINPUT);
    assert_non_null(
        strstr(cx->last->message, "column 17: parentheses nest deeper than 16"));
    const char *many = ms_arena_printf(cx->arena, "(%s1)", repeated(cx, "1,", 64));
    ASSERT_INT(ms_layout_parse(cx, many, MS_LEXICOGRAPHIC, &got), MS_EINPUT);
    assert_non_null(strstr(cx->last->message, "column 130: more than 64 modes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_is_a_function_of_index_and_coordinate),
        cmocka_unit_test(a_single_mode_has_rank_one_and_depth_zero),
        cmocka_unit_test(the_last_mode_is_fastest_in_pytorchs_order),
        cmocka_unit_test(a_shape_alone_is_compact),
        cmocka_unit_test(coalescing_merges_what_continues),
        cmocka_unit_test(composition_gives_cutes_answers),
        cmocka_unit_test(complements_fill_what_is_left_out),
        cmocka_unit_test(division_and_product_give_cutes_answers),
        cmocka_unit_test(the_right_inverse_finds_the_index_of_a_value),
        cmocka_unit_test(text_may_hold_operations),
        cmocka_unit_test(overlap_is_told_with_the_value),
        cmocka_unit_test(groups_are_the_division_of_the_world),
        cmocka_unit_test(undefined_operations_say_why),
        cmocka_unit_test(nothing_overflows),
        cmocka_unit_test(wrong_text_is_told_by_column),
        cmocka_unit_test(text_has_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
