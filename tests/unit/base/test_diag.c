/* Diagnostics (error messages): their printed form, their limits, and proposing the
 * nearest known word. */
#include "base/utf8.h"

#include "tests/test.h"

static void an_error_prints_place_message_path_and_hint(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_loc loc = {"job.json", "/mesh/tp", 4, 11};
    ASSERT_INT(ms_fail(cx, MS_EINPUT, loc, "\"tp\" is %d", 12), MS_EINPUT);
    ms_hint(cx, "at most %d", 8);
    ASSERT_TEXT(test_messages(cx), "job.json:4:11: error: \"tp\" is 12 (at /mesh/tp)\n"
                                   "  hint: at most 8\n");
}

static void absent_parts_of_a_place_are_left_out(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_fail(cx, MS_EIO, MS_NOWHERE, "no");
    ms_fail(cx, MS_EIO, (ms_loc){.file = "a"}, "b");
    ms_fail(cx, MS_EIO, (ms_loc){.file = "a", .line = 3}, "c");
    ASSERT_TEXT(test_messages(cx), "error: no\na: error: b\na:3: error: c\n");
}

static void the_place_is_copied(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    char file[] = "one.json";
    ms_fail(cx, MS_EIO, (ms_loc){.file = file}, "x");
    memset(file, '#', sizeof file - 1);
    ASSERT_TEXT(test_messages(cx), "one.json: error: x\n");
}

static void foreign_bytes_appear_as_hex(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s",
            "\xFFz \xC3\xA9 \xC3 \x1B[0m\n \xC2\x85 \xED\xA0\x80");
    ASSERT_TEXT(
        test_messages(cx),
        "error: \\xFFz \xC3\xA9 \\xC3 \\x1B[0m\\x0A \\xC2\\x85 \\xED\\xA0\\x80\n");
}

static void only_twenty_errors_are_kept(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    for (int i = 0; i < 25; i++) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "number %d", i);
        ms_hint(cx, "hint %d", i);
    }
    ASSERT_INT(cx->num_errors, 25);
    ASSERT_TEXT(cx->last->message, "number 19");
    ASSERT_TEXT(cx->last->hint, "hint 19");
    assert_non_null(strstr(test_messages(cx), "error: 5 more errors are not shown\n"));
}

static void a_hint_without_an_error_is_dropped(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_hint(cx, "nothing to hint at");
    ASSERT_TEXT(test_messages(cx), "");
}

static void a_very_long_value_is_cut(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    char *value = ms_arena_alloc(cx->arena, 100001);
    memset(value, 'v', 100000);
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "\"%s\"", value);
    assert_true(strlen(cx->first->message) < 2100);
    ASSERT_TEXT(cx->first->message + strlen(cx->first->message) - 4, "v...");
}

static void the_nearest_word_is_found(void **state)
{
    (void)state;
    static const char *const words[] = {"gpipe", "1f1b", "interleaved", "dualpipe",
                                        "zb-h1"};
    ASSERT_TEXT(ms_nearest("gpip", words, 5), "gpipe");
    ASSERT_TEXT(ms_nearest("GPIPE", words, 5), "gpipe");
    ASSERT_TEXT(ms_nearest("zb-1h", words, 5), "zb-h1");
    ASSERT_TEXT(ms_nearest("interlaevd", words, 5), "interleaved");
    assert_null(ms_nearest("megatron", words, 5));
    assert_null(ms_nearest("x", words, 5));
    assert_null(ms_nearest("", words, 5));
    assert_null(ms_nearest("gpipe", words, 0));
}

static void a_prefix_cuts_no_character(void **state)
{
    (void)state;
    const char *text = "a\xc3\xa9\xff\xe2\x82\xac";
    const int bytes[] = {0, 1, 3, 4, 7, 7};
    for (int most = 0; most < 6; most++)
        ASSERT_INT(ms_utf8_prefix(text, most), bytes[most]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_prints_place_message_path_and_hint),
        cmocka_unit_test(absent_parts_of_a_place_are_left_out),
        cmocka_unit_test(the_place_is_copied),
        cmocka_unit_test(foreign_bytes_appear_as_hex),
        cmocka_unit_test(only_twenty_errors_are_kept),
        cmocka_unit_test(a_hint_without_an_error_is_dropped),
        cmocka_unit_test(a_very_long_value_is_cut),
        cmocka_unit_test(the_nearest_word_is_found),
        cmocka_unit_test(a_prefix_cuts_no_character),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
