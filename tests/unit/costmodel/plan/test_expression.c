/* Expressions of rules: what they mean, and every error of their reader with its hint. */
#include "costmodel/plan/expression.h"

#include "tests/test.h"

#include <limits.h>

static const char *const schedule_words[] = {"1f1b", "zb-v", "interleaved", NULL};
static const ms_variable variables[] = {
    {"tp", NULL},  {"heads", NULL}, {"schedule", schedule_words},
    {"big", NULL}, {"small", NULL}, {"order", NULL},
    {NULL, NULL}};
/* tp 4, heads 12, schedule zb-v, the ends of long, order 0 */
static const long values[] = {4, 12, 1, LONG_MAX, LONG_MIN, 0};

static ms_status parse(ms_ctx *cx, const char *text, ms_expression *out)
{
    return ms_expression_parse(cx, (ms_loc){.file = "r.json", .line = 3, .column = 7},
                               text, variables, out);
}

static void expect(const char *text, bool want)
{
    ms_ctx *cx = test_cx();
    ms_expression expression;
    ASSERT_OK(parse(cx, text, &expression), cx);
    if (ms_expression_holds(&expression, values) != want)
        fail_msg("\"%s\" must %shold", text, want ? "" : "not ");
}

static void expect_error(const char *text, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_expression expression;
    ASSERT_INT(parse(cx, text, &expression), MS_EINPUT);
    ASSERT_INT(cx->num_errors, 1);
    const char *messages = test_messages(cx);
    if (strstr(messages, message) == NULL)
        fail_msg("expected \"%s\" in:\n%s", message, messages);
    assert_non_null(strstr(messages, "r.json:3:7"));
}

/* ---- meaning ---- */

static void operators_bind_as_in_arithmetic(void **state)
{
    (void)state;
    expect("2 + 3 * 4 = 14", true);
    expect("(2 + 3) * 4 = 20", true);
    expect("20 / 3 * 3 = 18", true);
    expect("20 - 5 - 5 = 10", true);
    expect("20 % 7 + 1 = 7", true);
    expect("1 or 0 and 0", true);
    expect("(1 or 0) and 0", false);
    expect("not 0 and 0", false);
    expect("not (0 and 0)", true);
    expect("not tp = 3", true);
    expect("not not tp", true);
    expect("  tp=4 and heads=12 ", true);
}

static void comparisons_hold_at_their_limits(void **state)
{
    (void)state;
    expect("tp < 4", false);
    expect("tp <= 4", true);
    expect("tp > 4", false);
    expect("tp >= 4", true);
    expect("tp = 4", true);
    expect("tp != 4", false);
    expect("0 - 1 < 0", true);
}

/* Schedule as a set: its value 1 is the set of the first word alone. */
static void sets_have_words(void **state)
{
    (void)state;
    expect("schedule has 1f1b", true);
    expect("schedule has zb-v", false);
    expect("not (schedule has interleaved or schedule has zb-v)", true);
    expect_error("schedule has tp", "unknown word \"tp\"");
}

static void divides_is_false_for_zero_and_true_for_multiples(void **state)
{
    (void)state;
    expect("tp divides heads", true);
    expect("heads divides tp", false);
    expect("2 * tp divides heads + 4", true);
    expect("0 divides heads", false);
    expect("tp divides 0", true);
    expect("0 divides 0", false);
}

static void a_number_holds_unless_it_is_zero(void **state)
{
    (void)state;
    expect("tp", true);
    expect("0 - 5", true);
    expect("tp - 4", false);
    ms_expression empty = {0};
    assert_true(ms_expression_holds(&empty, values));
}

static void words_may_have_digits_and_hyphens(void **state)
{
    (void)state;
    expect("schedule = zb-v", true);
    expect("schedule != 1f1b", true);
    expect("schedule in {1f1b}", false);
    expect("schedule in {1f1b, interleaved, zb-v}", true);
    expect("not schedule in {1f1b,interleaved}", true);
    expect("schedule in {zb-v} and tp = 4", true);
}

static void sums_and_products_stop_at_the_ends_of_long(void **state)
{
    (void)state;
    expect("big + 1 = big", true);
    expect("small - 1 = small", true);
    expect("big * 2 = big", true);
    expect("big * (0 - 2) = small", true);
    expect("small * (0 - 1) = big", true);
    expect("small * small = big", true);
    expect("0 - small = big", true);
    expect("small / (0 - 1) = big", true);
    expect("small % (0 - 1) = 0", true);
    expect("(0 - 1) divides small", true);
}

static void division_by_zero_is_zero(void **state)
{
    (void)state;
    expect("tp / order = 0", true);
    expect("tp % order = 0", true);
}

static void an_expression_knows_what_it_reads(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_expression expression;
    ASSERT_OK(parse(cx, "heads > 1 and schedule in {1f1b, zb-v}", &expression), cx);
    ASSERT_INT(expression.reads, 1 << 1 | 1 << 2);
    ASSERT_OK(parse(cx, "1", &expression), cx);
    ASSERT_INT(expression.reads, 0);
}

/* ---- errors ---- */

static void errors_quote_the_text_and_what_is_expected(void **state)
{
    (void)state;
    expect_error("", "\"\" ends where a name or a number is expected");
    expect_error("tp >", "\"tp >\" ends where a name or a number is expected");
    expect_error("(tp", "\"(tp\" ends where \")\" is expected");
    expect_error("tp 4", "\"tp 4\" has \"4\" where \"and\" or \"or\" is expected");
    expect_error("tp = 4 = 4", "has \"= 4\" where \"and\" or \"or\" is expected");
    expect_error("tp & 4", "has \"& 4\" where \"and\" or \"or\" is expected");
    expect_error("-1", "has \"-1\" where a name or a number is expected");
    expect_error("tp in {1}", "has \"{1}\" where a comparison of numbers is expected");
    expect_error("schedule in 1f1b", "has \"1f1b\" where \"{\" is expected");
    expect_error("schedule in {}", "has \"}\" where a word is expected");
    expect_error("schedule in {1f1b", "ends where \"}\" is expected");
    expect_error("schedule =", "ends where a word is expected");
}

static void unknown_names_and_words_come_with_a_hint(void **state)
{
    (void)state;
    expect_error("head > 1", "unknown name \"head\" in \"head > 1\"");
    expect_error("head > 1", "did you mean \"heads\"?");
    expect_error("quantization > 1", "unknown name \"quantization\"");
    expect_error("schedule = gpipe", "unknown word \"gpipe\" in \"schedule = gpipe\"");
    expect_error("schedule = gpipe", "use 1f1b, zb-v, interleaved");
    expect_error("tp-1 = 3", "unknown name \"tp-1\""); /* a hyphen joins words */
    expect_error("3x > 1", "\"3x\" in \"3x > 1\" is no whole number");
    expect_error("tp < 9223372036854775808", "is no whole number");
}

static const char *repeated(ms_arena *arena, const char *part, int times)
{
    const char *text = "";
    for (int i = 0; i < times; i++)
        text = ms_arena_printf(arena, "%s%s", text, part);
    return text;
}

static void long_and_deep_texts_are_refused(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    expect(ms_arena_printf(arena, "%s1", repeated(arena, "not ", 14)), true);
    expect_error(ms_arena_printf(arena, "%s1", repeated(arena, "not ", 16)),
                 "is nested deeper than 16 levels");
    expect_error(repeated(arena, "(", 20), "is nested deeper than 16 levels");
    expect(ms_arena_printf(arena, "1%s", repeated(arena, " + 1", 31)), true);
    expect_error(ms_arena_printf(arena, "1%s", repeated(arena, " + 1", 32)),
                 "has more than 64 names, numbers and operators");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_bind_as_in_arithmetic),
        cmocka_unit_test(comparisons_hold_at_their_limits),
        cmocka_unit_test(divides_is_false_for_zero_and_true_for_multiples),
        cmocka_unit_test(sets_have_words),
        cmocka_unit_test(a_number_holds_unless_it_is_zero),
        cmocka_unit_test(words_may_have_digits_and_hyphens),
        cmocka_unit_test(sums_and_products_stop_at_the_ends_of_long),
        cmocka_unit_test(division_by_zero_is_zero),
        cmocka_unit_test(an_expression_knows_what_it_reads),
        cmocka_unit_test(errors_quote_the_text_and_what_is_expected),
        cmocka_unit_test(unknown_names_and_words_come_with_a_hint),
        cmocka_unit_test(long_and_deep_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
