/* Tables that are too wide for their lines: equal columns move above, titles and texts
 * wrap, columns are left out and named, and no line is ever too long. */
#include "base/table.h"
#include "base/utf8.h"
#include "tests/test.h"

#include <string.h>

static const char *printed(const ms_table *table, int most)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_table_limit_width(most);
    ms_table_print(table, file);
    ms_table_limit_width(0);
    return test_read_back(test_cx()->arena, file);
}

static ms_table *plans(void)
{
    ms_table *table = MS_TABLE(test_cx()->arena, "rrr2r1ll", "#", "step (s)", "tokens/s",
                               "peak (GiB)", "sp", "order of axes");
    ms_table_cells(table, "%d\t%.2f\t%d\t%.1f\t%s\t%s", 1, 7.5, 1051, 54.3, "on",
                   "pp,tp");
    ms_table_cells(table, "%d\t%.2f\t%d\t%.1f\t%s\t%s", 2, 7.6, 1050, 54.3, "on",
                   "tp,pp");
    return table;
}

static void a_table_that_fits_stays_as_it_is(void **state)
{
    (void)state;
    const char *all = "#  step (s)  tokens/s  peak (GiB)  sp  order of axes\n"
                      "----------------------------------------------------\n"
                      "1      7.50      1051        54.3  on  pp,tp\n"
                      "2      7.60      1050        54.3  on  tp,pp\n";
    ASSERT_TEXT(printed(plans(), 52), all);
    ASSERT_TEXT(printed(plans(), 0), all);
}

static void equal_columns_move_above_with_their_units(void **state)
{
    (void)state;
    ASSERT_TEXT(printed(plans(), 51), "all: peak 54.3 GiB, sp on\n"
                                      "#  step (s)  tokens/s  order of axes\n"
                                      "------------------------------------\n"
                                      "1      7.50      1051  pp,tp\n"
                                      "2      7.60      1050  tp,pp\n");
}

static void then_titles_take_several_lines(void **state)
{
    (void)state;
    ASSERT_TEXT(printed(plans(), 30), "all: peak 54.3 GiB, sp on\n"
                                      "   step            order of\n"
                                      "#   (s)  tokens/s  axes\n"
                                      "---------------------------\n"
                                      "1  7.50      1051  pp,tp\n"
                                      "2  7.60      1050  tp,pp\n");
}

static void then_columns_are_left_out_and_named(void **state)
{
    (void)state;
    ASSERT_TEXT(printed(plans(), 20), "all: peak 54.3 GiB,\n"
                                      "     sp on\n"
                                      "   step  order of\n"
                                      "#   (s)  axes\n"
                                      "-----------------\n"
                                      "1  7.50  pp,tp\n"
                                      "2  7.60  tp,pp\n"
                                      "left out: tokens/s;\n"
                                      "          --wide\n"
                                      "          shows all\n");
}

static void columns_of_equal_rank_give_way_from_the_right(void **state)
{
    (void)state;
    ms_table *table =
        MS_TABLE(test_cx()->arena, "lr1r1r", "a", "bbbbb", "ccccc", "ddddd");
    for (int i = 0; i < 8; i++)
        ms_table_cell(table, "%d", i);
    ASSERT_TEXT(printed(table, 16), "a  bbbbb  ddddd\n"
                                    "---------------\n"
                                    "0      1      3\n"
                                    "4      5      7\n"
                                    "left out: ccccc;\n"
                                    "        --wide\n"
                                    "        shows\n"
                                    "        all\n");
}

static void texts_take_several_lines_where_allowed(void **state)
{
    (void)state;
    ms_table *table = MS_TABLE(test_cx()->arena, "lLr", "axis", "why", "n");
    ms_table_cells(table, "%s\t%s\t%d", "tp", "the fastest links of a node", 8);
    ms_table_cells(table, "%s\t%s\t%d", "pp", "few bytes", 4);
    ASSERT_TEXT(printed(table, 26), "axis  why                n\n"
                                    "--------------------------\n"
                                    "tp    the fastest links  8\n"
                                    "      of a node\n"
                                    "pp    few bytes          4\n");
}

static void of_a_single_row_only_what_is_needed_moves(void **state)
{
    (void)state;
    ms_table *table =
        MS_TABLE(test_cx()->arena, "lrrr", "name", "aaaa", "bbbb", "cc (s)");
    ms_table_cells(table, "%s\t%d\t%d\t%.1f", "x", 1, 2, 3.5);
    ASSERT_TEXT(printed(table, 20), "also: cc 3.5 s\n"
                                    "name  aaaa  bbbb\n"
                                    "----------------\n"
                                    "x        1     2\n");
}

static void columns_with_one_title_do_not_move(void **state)
{
    (void)state;
    ms_table *table = MS_TABLE(test_cx()->arena, "lrrr", "name", "n", "bias", "bias");
    ms_table_cells(table, "%s\t%d\t%d\t%d", "first name", 3, 2, 5);
    ms_table_cells(table, "%s\t%d\t%d\t%d", "other name", 3, 2, 5);
    const char *text = printed(table, 22);
    assert_non_null(strstr(text, "all: n 3\n"));
    assert_non_null(strstr(text, "  bias  bias\n"));
}

static void assert_no_line_above(const char *text, size_t most)
{
    while (*text != '\0') {
        size_t bytes = strcspn(text, "\n");
        assert_true(ms_utf8_width(ms_arena_strndup(test_cx()->arena, text, bytes)) <=
                    most);
        assert_true(bytes == 0 || text[bytes - 1] != ' ');
        text += bytes + 1;
    }
}

static void no_line_is_longer_than_the_width(void **state)
{
    (void)state;
    const char *const alignments[] = {"lrrrrr", "LRLRLR", "r1l2L3R4l5r6", "lL9rR9lL"};
    ms_ctx *cx = test_cx();
    for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++) {
        ms_table *table = ms_table_new(cx->arena);
        MS_COLUMNS(table, alignments[a], "system", "median error (%)", "dp_replicate",
                   "B - A (ms)", "\xC2\xB5s", "");
        for (int i = 0; i < 60; i++)
            ms_table_cell(table, "%.*s", (i * 37) % 31,
                          "a text with some words, more or less");
        for (int most = 11; most < 200; most++)
            assert_no_line_above(printed(table, most), (size_t)most);
    }
}

static void everything_is_shown_or_named(void **state)
{
    (void)state;
    const char *const titles[] = {"step", "tokens/s", "peak", "sp", "order"};
    for (int most = 16; most < 60; most++) {
        const char *text = printed(plans(), most);
        for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
            assert_non_null(strstr(text, titles[i]));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_that_fits_stays_as_it_is),
        cmocka_unit_test(equal_columns_move_above_with_their_units),
        cmocka_unit_test(then_titles_take_several_lines),
        cmocka_unit_test(then_columns_are_left_out_and_named),
        cmocka_unit_test(columns_of_equal_rank_give_way_from_the_right),
        cmocka_unit_test(texts_take_several_lines_where_allowed),
        cmocka_unit_test(of_a_single_row_only_what_is_needed_moves),
        cmocka_unit_test(columns_with_one_title_do_not_move),
        cmocka_unit_test(no_line_is_longer_than_the_width),
        cmocka_unit_test(everything_is_shown_or_named),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
