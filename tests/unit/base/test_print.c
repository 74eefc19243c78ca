/* Printed text: control characters of the format string are printed, those in its
 * arguments appear as numbers. */
#include "base/print.h"
#include "tests/test.h"

static void only_arguments_are_escaped(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_print(file, "\033[1m%s\033[0m\t%-4s|%3d %%\n", "a\033[31m\nb", "\xC3\xA9\xC2\x80",
             7);
    ms_print(file, "%.*s%c", 2, "\n\r\t", '\x7F');
    ASSERT_TEXT(test_read_back(test_cx()->arena, file),
                "\033[1ma\\x1B[31m\\x0Ab\033[0m\t\xC3\xA9\\xC2\\x80|  7 %\n"
                "\\x0A\\x0D\\x7F");
}

static void long_text_is_whole(void **state)
{
    (void)state;
    enum {
        LENGTH = 100000
    };
    ms_arena *arena = test_cx()->arena;
    char *text = ms_arena_alloc(arena, LENGTH + 1);
    memset(text, '\n', LENGTH);
    FILE *file = tmpfile();
    assert_non_null(file);
    ASSERT_INT(ms_print(file, "%s\n", text), 4 * LENGTH + 1);
    const char *printed = test_read_back(arena, file);
    ASSERT_INT(strlen(printed), 4 * LENGTH + 1);
    ASSERT_TEXT(printed + 4 * LENGTH - 8, "\\x0A\\x0A\n");
}

static void printable_text_is_itself(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    const char *text = "2 \xC2\xB5s, \xE2\x82\xAC";
    assert_ptr_equal(ms_printable(arena, text), text);
    ASSERT_TEXT(ms_printable(arena, "\xE2\x82"), "\\xE2\\x82");
    ASSERT_TEXT(ms_printable(arena, ""), "");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_arguments_are_escaped),
        cmocka_unit_test(long_text_is_whole),
        cmocka_unit_test(printable_text_is_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
