/* Printed tables: columns are aligned by characters, not bytes, whatever titles and
 * cells hold. */
#include "base/table.h"
#include "tests/test.h"

#include <math.h>

static const char *printed(ms_arena *arena, const ms_table *table)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_table_print(table, file);
    return test_read_back(arena, file);
}

static void columns_are_aligned_and_no_line_ends_in_a_space(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    ms_table *table = MS_TABLE(arena, "lrl", "plan", "step (s)", "note");
    ms_table_cell(table, "tp%d", 8);
    ms_table_cell(table, "%.2f", 12.5);
    ms_table_cell(table, "fits");
    ms_table_cell(table, "%s", "pp16 \xC2\xB5");
    ms_table_cell(table, "%.2f", 7.0);
    ms_table_cell(table, "%s", "");
    ASSERT_TEXT(printed(arena, table), "plan    step (s)  note\n"
                                       "----------------------\n"
                                       "tp8        12.50  fits\n"
                                       "pp16 \xC2\xB5      7.00\n");
}

static void an_empty_table_prints_its_header(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    const ms_table *table = MS_TABLE(arena, "rr", "a", "b");
    ASSERT_TEXT(printed(arena, table), "a  b\n----\n");
}

static void titles_hold_any_character(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    ms_table *table = MS_TABLE(arena, "lr", "by a|b (GB)", "<c");
    MS_COLUMNS(table, "l", "d");
    ms_table_cell(table, "x|y");
    ms_table_cell(table, "%d", 1);
    ms_table_cell(table, "z");
    ASSERT_TEXT(printed(arena, table), "by a|b (GB)  <c  d\n"
                                       "------------------\n"
                                       "x|y           1  z\n");
}

static void control_characters_appear_as_numbers_and_count_as_such(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    ms_table *table = MS_TABLE(arena, "lr", "a\tb", "n");
    ms_table_cell(table, "\x1B[31m\n\xC2\x9B\xFF");
    ms_table_cell(table, "%d", 1);
    ASSERT_TEXT(printed(arena, table), "a\\x09b                    n\n"
                                       "---------------------------\n"
                                       "\\x1B[31m\\x0A\\xC2\\x9B\\xFF  1\n");
}

static void many_rows_are_kept(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    ms_table *table = MS_TABLE(arena, "r", "n");
    for (int i = 0; i < 1000; i++)
        ms_table_cell(table, "%d", i);
    const char *text = printed(arena, table);
    assert_non_null(strstr(text, "\n  0\n  1\n  2\n"));
    assert_non_null(strstr(text, "\n998\n999\n"));
}

static void a_row_is_one_call(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    ms_table *table = MS_TABLE(arena, "lrrrl", "a", "b", "c", "d", "e");
    ms_table_cells(table, "%.*s %c\t%ld\t%.*f\t%d %%\t", 2, "xyz", 'q', 5000000000L, 1,
                   2.25, 7);
    ms_table_cells(table, "tab\\t%s\t%d\t%+.1f\t%.3g %d\t%s", "a\tb", 1, (double)NAN,
                   (double)NAN, 3, "end");
    ASSERT_TEXT(printed(arena, table), "a                     b    c    d  e\n"
                                       "--------------------------------------\n"
                                       "xy q         5000000000  2.2  7 %\n"
                                       "tab\\ta\\x09b           1    -    -  end\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_aligned_and_no_line_ends_in_a_space),
        cmocka_unit_test(an_empty_table_prints_its_header),
        cmocka_unit_test(titles_hold_any_character),
        cmocka_unit_test(control_characters_appear_as_numbers_and_count_as_such),
        cmocka_unit_test(many_rows_are_kept),
        cmocka_unit_test(a_row_is_one_call),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
