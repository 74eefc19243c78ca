/* Soak test: the search's certificate. No plan of the space that the framework accepts and
 * that fits with the probability asked for is faster than the plan that the search finds,
 * of PLANS (10,000) legal plans drawn at random for each case, every second one a
 * neighbour of the best. Prints what was covered. */
#include "tests/property/random_cases.h"

static const search_case cases[] = {
    {"70b", "megatron", "hgx-h100", 512, 512, 1, 1.0, {NULL}},
    {"70b", "torchtitan", "hgx-h100", 512, 512, 2, 1.0, {NULL}},
    {"405b", "megatron", "hgx-h100", 16384, 2048, 3, 1.0, {NULL}},
    {"405b", "torchtitan", "hgx-h100", 16384, 2048, 4, 1.0, {NULL}},
    {"mixtral-8x7b", "megatron", "hgx-h100", 128, 512, 5, 1.0, {NULL}},
    {"mixtral-8x7b", "deepspeed", "hgx-h100", 128, 512, 6, 1.0, {NULL}},
    {"qwen3-235b-a22b", "megatron", "hgx-h100", 512, 512, 7, 1.0, {NULL}},
    {"qwen3-235b-a22b", "nemo", "hgx-b200", 512, 512, 8, 1.0, {NULL}},
    {"deepseek-v3", "megatron", "gb200-nvl72", 2048, 2048, 9, 1.0, {NULL}},
    {"deepseek-v3", "torchtitan", "hgx-h100", 2048, 2048, 10, 1.0, {NULL}},
    {"8b", "nanotron", "hgx-a100-80g", 64, 512, 11, 1.0, {NULL}},
    {"8b", "megatron", "hgx-h100", 64, 512, 12, 1.0, {NULL}},
    {"70b", "ideal", "hgx-h100", 512, 512, 13, 1.0, {NULL}},
};

static void no_random_plan_is_faster(void **state)
{
    (void)state;
    const char *given = getenv("PLANS");
    long num_plans = given != NULL ? strtol(given, NULL, 10) : 10000;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(draw_slower_plans(&cases[i], num_plans) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_random_plan_is_faster)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
