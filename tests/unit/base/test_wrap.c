/* Long lines are broken between words, and never inside a character. */
#include "base/wrap.h"
#include "tests/test.h"

static const char *wrapped(const char *text, size_t width, size_t indent)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_wrap_print(file, text, width, indent);
    return test_read_back(test_cx()->arena, file);
}

static void lines_end_at_spaces_and_behind_commas(void **state)
{
    (void)state;
    ASSERT_TEXT(wrapped("all: sp on, zero 1", 80, 5), "all: sp on, zero 1\n");
    ASSERT_TEXT(wrapped("all: sp on, zero 1", 15, 5), "all: sp on,\n     zero 1\n");
    ASSERT_TEXT(wrapped("dp_shard,pp,cp", 12, 0), "dp_shard,pp,\ncp\n");
    ASSERT_TEXT(wrapped("a  b", 2, 0), "a\nb\n");
    ASSERT_TEXT(wrapped("", 10, 2), "\n");
}

static void without_a_width_there_is_one_line(void **state)
{
    (void)state;
    ASSERT_TEXT(wrapped("a b c", 0, 2), "a b c\n");
}

static void long_words_break_anywhere_but_in_characters(void **state)
{
    (void)state;
    ASSERT_TEXT(wrapped("abcdefg", 3, 0), "abc\ndef\ng\n");
    ASSERT_TEXT(wrapped("\xC2\xB5\xC2\xB5\xC2\xB5", 2, 0),
                "\xC2\xB5\xC2\xB5\n\xC2\xB5\n");
    ASSERT_TEXT(wrapped("abc", 1, 7), "a\nb\nc\n");
}

static void the_longest_word_is_found(void **state)
{
    (void)state;
    ASSERT_INT(ms_wrap_longest_word("", ","), 0);
    ASSERT_INT(ms_wrap_longest_word(" ", ","), 1);
    ASSERT_INT(ms_wrap_longest_word("  becomes", ","), 9);
    ASSERT_INT(ms_wrap_longest_word("one three two", ","), 5);
    ASSERT_INT(ms_wrap_longest_word("dp_replicate,pp", ","), 13);
    ASSERT_INT(ms_wrap_longest_word("dp_replicate,pp", "_"), 12);
    ASSERT_INT(ms_wrap_longest_word("\xC2\xB5\xC2\xB5 s", ","), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_at_spaces_and_behind_commas),
        cmocka_unit_test(without_a_width_there_is_one_line),
        cmocka_unit_test(long_words_break_anywhere_but_in_characters),
        cmocka_unit_test(the_longest_word_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
