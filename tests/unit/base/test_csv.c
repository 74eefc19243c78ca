/* Reading rows of CSV: what RFC 4180 allows, what it does not, and where reading
 * continues after an error. */
#include "base/csv.h"

#include "tests/test.h"

static ms_arena *arena(void)
{
    return test_cx()->arena;
}

static ms_csv_row first_row(const char *text)
{
    ms_csv csv = ms_csv_open(text, strlen(text));
    ms_csv_row row;
    assert_true(ms_csv_next(arena(), &csv, &row));
    return row;
}

static void plain_fields_are_split_at_commas(void **state)
{
    (void)state;
    ms_csv_row row = first_row("a,,b c,\n");
    assert_null(row.fault);
    ASSERT_INT(row.num_cells, 4);
    ASSERT_TEXT(row.cells[0], "a");
    ASSERT_TEXT(row.cells[1], "");
    ASSERT_TEXT(row.cells[2], "b c");
    ASSERT_TEXT(row.cells[3], "");
}

static void quoted_fields_hold_commas_quotes_and_line_breaks(void **state)
{
    (void)state;
    ms_csv_row row = first_row("\"a,b\",\"say \"\"yes\"\"\",\"two\r\nlines\",\"\"\n");
    assert_null(row.fault);
    ASSERT_INT(row.num_cells, 4);
    ASSERT_TEXT(row.cells[0], "a,b");
    ASSERT_TEXT(row.cells[1], "say \"yes\"");
    ASSERT_TEXT(row.cells[2], "two\r\nlines");
    ASSERT_TEXT(row.cells[3], "");
}

static void cells_know_their_columns(void **state)
{
    (void)state;
    const int columns[] = {1, 5, 13, 15, 17};
    ms_csv_row row = first_row("\ra,\"b\"\"\"\"\",\"\",c,");
    assert_null(row.fault);
    ASSERT_INT(row.num_cells, 5);
    for (int i = 0; i < row.num_cells; i++)
        ASSERT_INT(row.columns[i], columns[i]);
}

static void rows_know_their_lines(void **state)
{
    (void)state;
    const char *text = "\xEF\xBB\xBFh\r\n\r\n\"x\ny\"\nlast";
    ms_csv csv = ms_csv_open(text, strlen(text));
    ms_csv_row row;
    const int lines[] = {1, 3, 5};
    const char *const cells[] = {"h", "x\ny", "last"};
    for (int i = 0; i < 3; i++) {
        assert_true(ms_csv_next(arena(), &csv, &row));
        ASSERT_INT(row.line, lines[i]);
        ASSERT_TEXT(row.cells[0], cells[i]);
    }
    assert_false(ms_csv_next(arena(), &csv, &row));
}

static void a_carriage_return_alone_is_an_ordinary_character(void **state)
{
    (void)state;
    ASSERT_TEXT(first_row("a\rb,c\n").cells[0], "a\rb");
}

static void a_malformed_row_does_not_end_the_file(void **state)
{
    (void)state;
    const char *const bad[] = {"a\"b,c\n", "\"a\"b,c\n"};
    const char *const faults[] = {"a quote stands inside a field without quotes",
                                  "there is text after a closing quote"};
    for (int i = 0; i < 2; i++) {
        char text[32];
        snprintf(text, sizeof text, "%snext", bad[i]);
        ms_csv csv = ms_csv_open(text, strlen(text));
        ms_csv_row row;
        assert_true(ms_csv_next(arena(), &csv, &row));
        ASSERT_TEXT(row.fault, faults[i]);
        ASSERT_INT(row.num_cells, 0);
        assert_true(ms_csv_next(arena(), &csv, &row));
        ASSERT_INT(row.line, 2);
        ASSERT_TEXT(row.cells[0], "next");
        assert_false(ms_csv_next(arena(), &csv, &row));
    }
}

static void reading_goes_on_after_the_line_of_an_open_quote(void **state)
{
    (void)state;
    const char *text = "a,\"open\nb,c\nd,\"open again\ne\n";
    ms_csv csv = ms_csv_open(text, strlen(text));
    ms_csv_row row;
    assert_true(ms_csv_next(arena(), &csv, &row));
    ASSERT_TEXT(row.fault, "there is text after a closing quote");
    const char *once = "a,\"open\nb,c\nd\n";
    csv = ms_csv_open(once, strlen(once));
    assert_true(ms_csv_next(arena(), &csv, &row));
    ASSERT_TEXT(row.fault, "a quote is never closed");
    assert_true(ms_csv_next(arena(), &csv, &row));
    ASSERT_INT(row.line, 2);
    ASSERT_INT(row.num_cells, 2);
}

static void zero_bytes_are_malformed(void **state)
{
    (void)state;
    static const char text[] = "a\0b,c\nd";
    ms_csv csv = ms_csv_open(text, sizeof text - 1);
    ms_csv_row row;
    assert_true(ms_csv_next(arena(), &csv, &row));
    ASSERT_TEXT(row.fault, "there is a zero byte");
    assert_true(ms_csv_next(arena(), &csv, &row));
    ASSERT_TEXT(row.cells[0], "d");
}

static void nothing_has_no_rows(void **state)
{
    (void)state;
    ms_csv csv = ms_csv_open("", 0);
    ms_csv_row row;
    assert_false(ms_csv_next(arena(), &csv, &row));
    csv = ms_csv_open("\n\r\n", 3);
    assert_false(ms_csv_next(arena(), &csv, &row));
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_csv csv;
    ASSERT_INT(ms_csv_load(cx, "no/such.csv", &csv), MS_EIO);
    assert_non_null(strstr(test_messages(cx), "no/such.csv"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_fields_are_split_at_commas),
        cmocka_unit_test(quoted_fields_hold_commas_quotes_and_line_breaks),
        cmocka_unit_test(cells_know_their_columns),
        cmocka_unit_test(rows_know_their_lines),
        cmocka_unit_test(a_carriage_return_alone_is_an_ordinary_character),
        cmocka_unit_test(a_malformed_row_does_not_end_the_file),
        cmocka_unit_test(reading_goes_on_after_the_line_of_an_open_quote),
        cmocka_unit_test(zero_bytes_are_malformed),
        cmocka_unit_test(nothing_has_no_rows),
        cmocka_unit_test(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
