/* Random plans on the loop backend give what one rank gives: the loss, every gradient of the first step, and in fp64 the weights after five steps. */
#include "tests/support/run_cases.h"

#include "tests/test.h"

/* Sanitizers are ten times as slow; without them there are 300 in all. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NUM_PLANS 24
#else
#define NUM_PLANS 150
#endif

static void random_plans_equal_one_rank_in_fp64(void **state)
{
    (void)state;
    ASSERT_INT(ms_run_random_plans(&ms_run_fp64, 11, NUM_PLANS), 0);
}

static void random_plans_equal_one_rank_in_fp32(void **state)
{
    (void)state;
    ASSERT_INT(ms_run_random_plans(&ms_run_fp32, 12, NUM_PLANS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans_equal_one_rank_in_fp64),
        cmocka_unit_test(random_plans_equal_one_rank_in_fp32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
