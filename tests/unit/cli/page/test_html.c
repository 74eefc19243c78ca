/* HTML whose arguments cannot become markup; exact values beside rounded ones. */
#include "cli/page/html.h"

#include "tests/test.h"

#include <math.h>

/* The text that `write` leaves in a file. */
static const char *written(ms_ctx *cx, void (*write)(const ms_html *html))
{
    FILE *file = tmpfile();
    assert_non_null(file);
    const ms_html html = {file, cx->arena};
    write(&html);
    return test_read_back(cx->arena, file);
}

static void write_names(const ms_html *html)
{
    ms_html_print(html, "<p title=\"%s\">\n%s &amp; %d%%</p>\n", "a\"b",
                  "<script>alert('x')</script> & <b>", 7);
}

static void arguments_are_no_markup(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_TEXT(written(cx, write_names),
                "<p title=\"a&quot;b\">\n&lt;script&gt;alert('x')&lt;/script&gt; &amp; "
                "&lt;b&gt; &amp; 7%</p>\n");
}

static void write_controls(const ms_html *html)
{
    ms_html_print(html, "%s|%s", "a\033[31m\xff", "h\xc3\xa9\x07");
}

static void controls_and_invalid_bytes_are_visible(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_TEXT(written(cx, write_controls), "a\\x1B[31m\\xFF|h\xc3\xa9\\x07");
}

static void write_figures(const ms_html *html)
{
    ms_html_figure(html, "step_s", 1.0 / 3.0, "%.1f s", 1.0 / 3.0);
    ms_html_figure(html, "cost", (double)NAN, "%s", "<");
}

static void figures_have_exact_values(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_TEXT(written(cx, write_figures),
                "<span class=\"figure\" data-key=\"step_s\" "
                "data-value=\"0.3333333333333333\">0.3 s</span>"
                "<span class=\"figure\" data-key=\"cost\" data-value=\"null\">not "
                "known</span>");
}

static void write_table(const ms_html *html)
{
    ms_html_table table =
        MS_HTML_TABLE(html, "t", "two <columns>", "lr", "name", "value (%)");
    ms_html_cell(&table, "%s", "a<b");
    ms_html_cell(&table, "%.1f", 2.0);
    ms_html_table_end(&table);
}

static void rows_and_columns_have_headings(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_TEXT(written(cx, write_table),
                "<div class=\"wide\" role=\"region\" tabindex=\"0\" "
                "aria-labelledby=\"t\">\n<table>\n"
                "<caption id=\"t\">two &lt;columns&gt;</caption>\n"
                "<thead><tr><th scope=\"col\" class=\"l\">name</th>"
                "<th scope=\"col\" class=\"r\">value (%)</th></tr></thead>\n<tbody>\n"
                "<tr><th scope=\"row\">a&lt;b</th><td class=\"r\">2.0</td></tr>\n"
                "</tbody>\n</table>\n</div>\n");
}

static void write_copy(const ms_html *html)
{
    FILE *from = tmpfile();
    assert_non_null(from);
    fputs("{\"model\": \"<x>\"}\nend", from);
    rewind(from);
    ms_html_copy(html, from);
    fclose(from);
}

static void copies_are_escaped(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_TEXT(written(cx, write_copy),
                "{&quot;model&quot;: &quot;&lt;x&gt;&quot;}\nend");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_no_markup),
        cmocka_unit_test(controls_and_invalid_bytes_are_visible),
        cmocka_unit_test(figures_have_exact_values),
        cmocka_unit_test(rows_and_columns_have_headings),
        cmocka_unit_test(copies_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
