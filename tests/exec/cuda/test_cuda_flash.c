/* Tests of the CUDA attention kernels on tensor cores: bf16, head widths 64 and 128. */
#include "tests/support/attention_cases.h"
#include "tests/test.h"

static void lengths_that_end_within_tiles(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "b 1 s 1 n 1 g 1 d 64 w 64",   "b 2 s 17 n 2 g 1 d 128 w 128",
        "b 1 s 100 n 2 g 2 d 64 w 64", "b 1 s 257 n 1 g 1 d 128 w 128",
        "b 1 s 257 n 1 g 1 d 64 w 64", NULL};
    ms_attention_cases_run(cases, MS_REAL_BF16);
}

static void heads_that_share_keys(void **state)
{
    (void)state;
    static const char *const cases[] = {"b 2 s 33 n 8 g 1 d 64 w 64",
                                        "b 1 s 70 n 8 g 2 d 128 w 128",
                                        "b 2 s 65 n 4 g 2 d 64 w 64", NULL};
    ms_attention_cases_run(cases, MS_REAL_BF16);
}

static void windows(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "b 1 s 200 n 2 g 1 d 64 w 64 window 1", "b 1 s 200 n 1 g 1 d 128 w 128 window 50",
        "b 1 s 130 n 1 g 1 d 128 w 128 window 1000",
        "b 1 s 200 n 1 g 1 d 64 w 64 window 70 head-tail", NULL};
    ms_attention_cases_run(cases, MS_REAL_BF16);
}

/* Ring attention equals whole attention: key blocks before, at and after the queries;
 * under head-tail balance a block is partly before and partly after. */
static void rings_equal_one_block(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "b 1 s 66 n 2 g 1 d 64 w 64 ranks 2",
        "b 2 s 268 n 1 g 1 d 64 w 64 ranks 2 head-tail",
        "b 1 s 234 n 2 g 1 d 128 w 128 ranks 3 head-tail",
        "b 1 s 264 n 1 g 1 d 128 w 128 ranks 4 head-tail",
        "b 1 s 132 n 1 g 1 d 64 w 64 window 40 ranks 4",
        "b 1 s 136 n 1 g 1 d 128 w 128 window 30 ranks 4 head-tail",
        NULL};
    ms_attention_cases_run(cases, MS_REAL_BF16);
}

/* Context parallelism that gathers keys: a rank has all keys and fewer queries, whose
 * first position is not 0. */
static void parts_of_queries_see_all_keys(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "b 2 s 132 n 2 g 1 d 64 w 64 ranks 2 gathered",
        "b 1 s 258 n 2 g 2 d 128 w 128 window 50 ranks 3 gathered",
        "b 1 s 140 n 2 g 1 d 128 w 128 ranks 2 gathered head-tail", NULL};
    ms_attention_cases_run(cases, MS_REAL_BF16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_that_end_within_tiles),
        cmocka_unit_test(heads_that_share_keys),
        cmocka_unit_test(windows),
        cmocka_unit_test(rings_equal_one_block),
        cmocka_unit_test(parts_of_queries_see_all_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
