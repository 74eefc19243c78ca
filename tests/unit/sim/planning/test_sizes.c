/* The numbers of GPUs to plot, given as ranges and lists. */
#include "sim/planning/sizes.h"
#include "tests/test.h"

static void expect(const char *text, const long *sizes, int num)
{
    ms_ctx *cx = test_cx();
    ms_sizes got;
    ASSERT_OK(ms_sizes_parse(cx, "--gpus", text, 1 << 24, &got), cx);
    ASSERT_INT(got.num, num);
    for (int i = 0; i < num; i++)
        ASSERT_INT(got.sizes[i], sizes[i]);
}

static void ranges_double_from_their_lower_end(void **state)
{
    (void)state;
    expect("64..512", (const long[]){64, 128, 256, 512}, 4);
    expect("48..192", (const long[]){48, 96, 192}, 3);
    expect("7..7", (const long[]){7}, 1);
    expect("512..2k", (const long[]){512, 1024, 2048}, 3);
}

static void lists_are_taken_as_they_are(void **state)
{
    (void)state;
    expect("64", (const long[]){64}, 1);
    expect("1,64,96,16777216", (const long[]){1, 64, 96, 16777216}, 4);
}

static void refuse(const char *text, const char *why)
{
    ms_ctx *cx = test_cx();
    ms_sizes got;
    ASSERT_INT(ms_sizes_parse(cx, "--gpus", text, 1 << 24, &got), MS_EINPUT);
    const char *messages = test_messages(cx);
    if (strstr(messages, why) == NULL)
        fail_msg("\"%s\": no \"%s\" in: %s", text, why, messages);
}

static void silly_input_is_refused(void **state)
{
    (void)state;
    refuse("", "a number is missing");
    refuse("..", "a number is missing");
    refuse("64..", "a number is missing");
    refuse("..64", "a number is missing");
    refuse("64,", "a number is missing");
    refuse(",64", "a number is missing");
    refuse("64..100", "doubling 64 gives 64, then 128, but not 100");
    refuse("64..32", "the range ends before it begins");
    refuse("64...128", "\".128\" is no whole number");
    refuse("64..128..256", "\"128..256\" is no whole number");
    refuse("64-128", "\"64-128\" is no whole number");
    refuse("0..8", "\"0\" is no whole number");
    refuse("-8..8", "\"-8\" is no whole number");
    refuse("1.5", "\"1.5\" is no whole number");
    refuse("nan", "\"nan\" is no whole number");
    refuse("1e30", "\"1e30\" is no whole number");
    refuse("64,64", "64 comes after 64");
    refuse("128,64", "64 comes after 128");
    refuse("16777217", "is no whole number from 1 to 16777216");
}

static void there_is_an_end_to_lists(void **state)
{
    (void)state;
    char text[512] = "1";
    for (int i = 2; i <= MS_MAX_SIZES; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ",%d", i);
    ms_ctx *cx = test_cx();
    ms_sizes got;
    ASSERT_OK(ms_sizes_parse(cx, "--gpus", text, 1 << 24, &got), cx);
    ASSERT_INT(got.num, MS_MAX_SIZES);
    strcat(text, ",1000");
    refuse(text, "more than 32 sizes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_double_from_their_lower_end),
        cmocka_unit_test(lists_are_taken_as_they_are),
        cmocka_unit_test(silly_input_is_refused),
        cmocka_unit_test(there_is_an_end_to_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
