/* Soak test: thousands of random plans executed on the loop backend (ranks are threads
 * of one process), compared with one rank. Arguments to run only some of them:
 * fp64|fp32 SEED FIRST NUM. */
#include "tests/support/run_cases.h"

#include "tests/test.h"

#define NUM_EACH 2500

static void random_plans_equal_one_rank_in_fp64(void **state)
{
    (void)state;
    ASSERT_INT(ms_run_random_plans(&ms_run_fp64, 101, 0, NUM_EACH), 0);
}

static void random_plans_equal_one_rank_in_fp32(void **state)
{
    (void)state;
    ASSERT_INT(ms_run_random_plans(&ms_run_fp32, 102, 0, NUM_EACH), 0);
}

static int run_some(char **arguments)
{
    const ms_run_tolerance *how =
        strcmp(arguments[0], "fp64") == 0 ? &ms_run_fp64 : &ms_run_fp32;
    uint64_t seed = strtoull(arguments[1], NULL, 10);
    long first = strtol(arguments[2], NULL, 10), num = strtol(arguments[3], NULL, 10);
    int num_wrong = ms_run_random_plans(how, seed, first, num);
    printf("%ld of %ld agree\n", num - num_wrong, num);
    return num_wrong > 0;
}

int main(int argc, char **argv)
{
    if (argc == 5)
        return run_some(argv + 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans_equal_one_rank_in_fp64),
        cmocka_unit_test(random_plans_equal_one_rank_in_fp32)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
