/* Tables of command-line options: which arguments are accepted, and that every error
 * message names the mistake and a remedy. */
#include "tests/test.h"

#include "base/options.h"
#include "cli/options/commands.h"

static const char *const colours[] = {"red", "green", "blue", NULL};

typedef struct values {
    bool json;
    ms_opt_switch overlap;
    ms_opt_integer tp;
    ms_opt_quantity memory;
    ms_opt_quantity bandwidth;
    const char *file;
    ms_opt_list axes;
    ms_opt_choice colour;
} values;

static bool find_colour(const char *text, int *index)
{
    *index = 2;
    return strcmp(text, "azure") == 0;
}

static const ms_option table[] = {
    MS_OPT_FLAG(values, json, "--json", "as JSON"),
    MS_OPT_ROW(MS_OPTION_SWITCH, values, overlap, "--overlap", .help = "overlap"),
    MS_OPT_INTEGER(values, tp, "--tp", "N", 1, 65536, "tensor parallelism"),
    MS_OPT_QUANTITY(values, memory, "--memory", "BYTES", MS_UNIT_BYTES, "memory"),
    {.kind = MS_OPTION_QUANTITY,
     .name = "--bandwidth",
     .offset = offsetof(values, bandwidth),
     .value = "RATE",
     .low = 1e9,
     .high = 1e12,
     .unit = MS_UNIT_BYTES_PER_S,
     .help = "bandwidth"},
    {.kind = MS_OPTION_TEXT,
     .name = "--output",
     .alias = "-o",
     .offset = offsetof(values, file),
     .value = "FILE",
     .help = "output"},
    MS_OPT_LIST(values, axes, "--axis", "AXIS", "axis of a sweep"),
    {.kind = MS_OPTION_CHOICE,
     .name = "--colour",
     .offset = offsetof(values, colour),
     .choices = colours,
     .find = find_colour,
     .help = "colour"},
    MS_OPT_MISTAKE("--dp", "--dp-shard or --dp-replicate"),
    {0},
};

#define MAX_ARGUMENTS 16

/* Parses words separated by spaces ('_' stands for an empty argument). */
static ms_status parse(ms_ctx *cx, const char *line, values *out, ms_words *words)
{
    *out = (values){0};
    char *argv[MAX_ARGUMENTS];
    int argc = 0;
    for (char *rest = ms_arena_strdup(cx->arena, line); *rest != '\0';) {
        size_t length = strcspn(rest, " ");
        argv[argc] = ms_arena_strndup(cx->arena, rest, length);
        if (strcmp(argv[argc], "_") == 0)
            argv[argc][0] = '\0';
        argc++;
        rest += length + (rest[length] == ' ');
    }
    ms_option_set set = {"options", table, out};
    return ms_options_parse(cx, &set, 1, argc, argv, words);
}

static void assert_refused(const char *line, const char *messages)
{
    ms_ctx *cx = test_cx();
    values out;
    ms_words words;
    ASSERT_INT(parse(cx, line, &out, &words), MS_EINPUT);
    ASSERT_TEXT(test_messages(cx), messages);
}

static void every_kind_is_read(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    values out;
    ms_words words;
    ASSERT_OK(
        parse(
            cx,
            "--json --overlap off --tp 8 --memory 80GiB --bandwidth=400Gb/s -o f --colour green",
            &out, &words),
        cx);
    assert_true(out.json);
    assert_true(out.overlap.given && !out.overlap.value);
    assert_true(out.tp.given);
    ASSERT_INT(out.tp.value, 8);
    ASSERT_NEAR(out.memory.value, 80.0 * 1073741824.0, 0.0);
    ASSERT_NEAR(out.bandwidth.value, 50e9, 0.0);
    ASSERT_TEXT(out.file, "f");
    ASSERT_INT(out.colour.value, 1);
}

static void what_is_not_given_stays_unset(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    values out;
    ms_words words;
    ASSERT_OK(parse(cx, "", &out, &words), cx);
    assert_true(!out.json && !out.overlap.given && !out.tp.given && !out.colour.given);
    assert_true(out.file == NULL && !out.axes.given && words.num_words == 0);
}

static void integers_take_binary_suffixes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    values out;
    ms_words words;
    ASSERT_OK(parse(cx, "--tp=8k", &out, &words), cx);
    ASSERT_INT(out.tp.value, 8192);
}

static void words_may_stand_anywhere(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    values out;
    ms_words words;
    ASSERT_OK(parse(cx, "a --tp 2 - -- --tp", &out, &words), cx);
    ASSERT_INT(words.num_words, 3);
    ASSERT_TEXT(words.words[0], "a");
    ASSERT_TEXT(words.words[1], "-");
    ASSERT_TEXT(words.words[2], "--tp");
    ASSERT_INT(out.tp.value, 2);
}

static void a_value_may_hold_an_equals_sign(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    values out;
    ms_words words;
    ASSERT_OK(parse(cx, "--output=--a=b", &out, &words), cx);
    ASSERT_TEXT(out.file, "--a=b");
}

static void only_lists_may_be_repeated(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    values out;
    ms_words words;
    ASSERT_OK(parse(cx, "--axis tp=1..8 --axis pp=2", &out, &words), cx);
    ASSERT_INT(out.axes.num_texts, 2);
    ASSERT_TEXT(out.axes.texts[1], "pp=2");
    assert_refused("--tp 2 --tp 2", "error: --tp is given twice\n");
    assert_refused("-o a --output b", "error: --output is given twice\n");
    assert_refused("--json --json", "error: --json is given twice\n");
}

static void unknown_options_name_the_nearest(void **state)
{
    (void)state;
    assert_refused("--tpp 8",
                   "error: unknown option \"--tpp\"\n  hint: did you mean --tp?\n");
    assert_refused("--mem=8",
                   "error: unknown option \"--mem\"\n  hint: did you mean --memory?\n");
    assert_refused(
        "--bandw 8",
        "error: unknown option \"--bandw\"\n  hint: did you mean --bandwidth?\n");
    assert_refused("-x",
                   "error: unknown option \"-x\"\n  hint: --help lists the options\n");
    assert_refused(
        "--dp 4",
        "error: unknown option \"--dp\"\n  hint: --dp-shard or --dp-replicate\n");
}

static void all_errors_are_reported(void **state)
{
    (void)state;
    assert_refused("--tp 0 --nothing-like-it --overlap yes --memory 80 --json=1",
                   "error: --tp is \"0\", must be a whole number from 1 to 65536\n"
                   "error: unknown option \"--nothing-like-it\"\n"
                   "  hint: --help lists the options\n"
                   "error: --overlap is \"yes\", must be on or off\n"
                   "error: --memory is \"80\", must be a quantity such as \"80 GiB\"\n"
                   "error: --json takes no value, but has \"1\"\n");
}

static void integers_are_whole_and_in_range(void **state)
{
    (void)state;
    static const char *const wrong[] = {"-1",    "2.5", "65537", "eight",
                                        "1e300", "_",   "0x8"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ms_ctx *cx = test_cx();
        values out;
        ms_words words;
        const char *line = ms_arena_printf(cx->arena, "--tp %s", wrong[i]);
        ASSERT_INT(parse(cx, line, &out, &words), MS_EINPUT);
        ASSERT_INT(cx->num_errors, 1);
        assert_false(out.tp.given);
    }
}

static void quantities_keep_their_range(void **state)
{
    (void)state;
    assert_refused("--bandwidth 2TB/s", "error: --bandwidth is \"2TB/s\", must be from "
                                        "1.00 GB/s to 1.00 TB/s\n");
}

static void a_missing_value_is_not_taken_from_the_next_option(void **state)
{
    (void)state;
    assert_refused("--tp --json", "error: --tp needs a value\n"
                                  "  hint: --tp N: tensor parallelism\n");
    assert_refused("--output -o",
                   "error: --output needs a value\n  hint: --output FILE: output\n"
                   "error: --output needs a value\n  hint: --output FILE: output\n");
    assert_refused("--colour",
                   "error: --colour needs a value\n  hint: one of red, green, blue\n");
    assert_refused("--output _", "error: --output is empty\n");
}

static void choices_have_other_words_and_suggestions(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    values out;
    ms_words words;
    ASSERT_OK(parse(cx, "--colour azure", &out, &words), cx);
    ASSERT_INT(out.colour.value, 2);
    assert_refused("--colour gren",
                   "error: --colour is \"gren\", must be one of red, green, "
                   "blue\n  hint: did you mean green?\n");
}

static void foreign_bytes_are_printed_escaped(void **state)
{
    (void)state;
    assert_refused("--tp \xff",
                   "error: --tp is \"\\xFF\", must be a whole number from 1 to 65536\n");
}

static void commands_have_names_help_and_examples(void **state)
{
    (void)state;
    for (const ms_command *command = ms_commands; command->name != NULL; command++) {
        assert_true(command->run != NULL && command->help != NULL);
        const char *start =
            ms_arena_printf(test_cx()->arena, "meshsim %s", command->name);
        ASSERT_INT(strncmp(command->example, start, strlen(start)), 0);
        assert_ptr_equal(ms_command_find(test_cx(), command->name), command);
    }
    assert_null(ms_command_find(test_cx(), "nonsense"));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_read),
        cmocka_unit_test(what_is_not_given_stays_unset),
        cmocka_unit_test(integers_take_binary_suffixes),
        cmocka_unit_test(words_may_stand_anywhere),
        cmocka_unit_test(a_value_may_hold_an_equals_sign),
        cmocka_unit_test(only_lists_may_be_repeated),
        cmocka_unit_test(unknown_options_name_the_nearest),
        cmocka_unit_test(all_errors_are_reported),
        cmocka_unit_test(integers_are_whole_and_in_range),
        cmocka_unit_test(quantities_keep_their_range),
        cmocka_unit_test(a_missing_value_is_not_taken_from_the_next_option),
        cmocka_unit_test(choices_have_other_words_and_suggestions),
        cmocka_unit_test(foreign_bytes_are_printed_escaped),
        cmocka_unit_test(commands_have_names_help_and_examples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
