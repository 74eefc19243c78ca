/* Random plans on the loop backend give what one rank gives: the loss, every gradient of the first step, and in fp64 the weights after five steps. */
#include "tests/support/run_cases.h"

#include "tests/test.h"

static void random_plans_equal_one_rank_in_fp64(void **state)
{
    (void)state;
    ASSERT_INT(ms_run_random_plans(&ms_run_fp64, 11, 150), 0);
}

static void random_plans_equal_one_rank_in_fp32(void **state)
{
    (void)state;
    ASSERT_INT(ms_run_random_plans(&ms_run_fp32, 12, 150), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans_equal_one_rank_in_fp64),
        cmocka_unit_test(random_plans_equal_one_rank_in_fp32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
