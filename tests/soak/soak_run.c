/* Thousands of random plans on the loop backend against one rank. */
#include "tests/support/run_cases.h"

#include "tests/test.h"

static void random_plans_equal_one_rank(void **state)
{
    (void)state;
    ASSERT_INT(ms_run_random_plans(&ms_run_fp64, 101, 2500), 0);
    ASSERT_INT(ms_run_random_plans(&ms_run_fp32, 102, 2500), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_plans_equal_one_rank)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
