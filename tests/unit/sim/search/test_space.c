/* Limits that a user sets on the plan search: which plans they leave, the names they
 * may use, and messages about other names. */
#include "sim/search/space.h"

#include "tests/test.h"

#include <limits.h>

static ms_space full_space(void)
{
    static const ms_stack stack = {.name = "test"};
    const ms_plan base = ms_plan_default(8);
    return ms_space_all(&base, &stack);
}

static void assert_leaves(const char *text, ms_choice choice, long low, long high)
{
    ms_ctx *cx = test_cx();
    ms_space space = full_space();
    ASSERT_OK(ms_space_limit(cx, &space, text), cx);
    ASSERT_INT(space.low[choice], low);
    ASSERT_INT(space.high[choice], high);
}

static void assert_refused(const char *text, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_space space = full_space();
    ASSERT_INT(ms_space_limit(cx, &space, text), MS_EINPUT);
    const char *messages = test_messages(cx);
    if (strstr(messages, message) == NULL)
        fail_msg("expected \"%s\" in:\n%s", message, messages);
}

static void comparisons_narrow_one_side_or_both(void **state)
{
    (void)state;
    assert_leaves("tp=8", MS_CHOOSE_TP, 8, 8);
    assert_leaves("tp<=8", MS_CHOOSE_TP, 0, 8);
    assert_leaves("pp>=2", MS_CHOOSE_PP, 2, LONG_MAX);
    assert_leaves("zero=0", MS_CHOOSE_ZERO, 0, 0);
    assert_leaves("zero<=3", MS_CHOOSE_ZERO, 0, 3);
    assert_leaves("recompute=full", MS_CHOOSE_RECOMPUTE, MS_RECOMPUTE_FULL,
                  MS_RECOMPUTE_FULL);
}

static void blanks_around_a_comparison_do_not_count(void **state)
{
    (void)state;
    assert_leaves(" tp <= 8 ", MS_CHOOSE_TP, 0, 8);
    assert_leaves("dp-shard\t=\t4", MS_CHOOSE_DP_SHARD, 4, 4);
    assert_refused("tp = ", "is no limit");
    assert_refused(" = 8", "is no limit");
}

static void short_names_stand_for_their_choice(void **state)
{
    (void)state;
    assert_leaves("v=2", MS_CHOOSE_VIRTUAL_STAGES, 2, 2);
    assert_leaves("mbs<=4", MS_CHOOSE_MICROBATCH, 0, 4);
    assert_leaves("async=on", MS_CHOOSE_ASYNC_TP, 1, 1);
    assert_leaves("SP=off", MS_CHOOSE_SEQUENCE_PARALLEL, 0, 0);
    assert_leaves("reshard=on", MS_CHOOSE_RESHARD, 1, 1);
}

static void numbers_out_of_range_are_refused(void **state)
{
    (void)state;
    assert_refused("zero=4", "zero is 4, must be between 0 and 3");
    assert_refused("zero<=9", "zero is 9, must be between 0 and 3");
    assert_refused("tp=0", "tp is 0, must be at least 1");
    assert_refused("microbatch>=0", "microbatch is 0, must be at least 1");
    assert_refused("tp=-1", "\"-1\" is no value of tp");
    assert_refused("tp=99999999999999999999", "is no value of tp");
}

static void words_have_no_order(void **state)
{
    (void)state;
    assert_refused("schedule<=1f1b", "schedule has no order\n  hint: schedule=1f1b\n");
    assert_refused("recompute>=none", "recompute has no order");
    assert_refused("async<=on", "async_tp has no order");
}

static void unknown_words_list_the_known_ones(void **state)
{
    (void)state;
    assert_refused("schedule=foo", "hint: use gpipe, 1f1b, interleaved, looped-bfs");
    assert_refused("recompute=some", "hint: use none, ");
    assert_refused("recompute=some", " or auto\n");
    assert_refused("async=yes", "hint: use off or on\n");
    assert_refused("quux=1", "hint: use pp, dp_replicate, dp_shard, cp, tp, ep, ");
    assert_refused("virtual_stage=1", "did you mean virtual_stages?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparisons_narrow_one_side_or_both),
        cmocka_unit_test(blanks_around_a_comparison_do_not_count),
        cmocka_unit_test(short_names_stand_for_their_choice),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(words_have_no_order),
        cmocka_unit_test(unknown_words_list_the_known_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
