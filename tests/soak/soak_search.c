/* Soak test: the plan search against brute force, which replays every plan of the
 * search space, for models of each kind, stacks and networks of each kind on 8 to 64
 * GPUs, and for parts of the space of 512 GPUs. Prints what was covered. */
#include <time.h>

#include "tests/property/search_cases.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const ms_memory_rule any = {0}, safe = {.min_probability = 0.95};

static void cover(const search_case *cases, size_t num, const ms_memory_rule *rule)
{
    for (size_t i = 0; i < num; i++) {
        double start_s = now_s();
        long plans = compare_by_rule(&cases[i], rule, 2);
        print_message("  %-17s %4ld x %-14s %-13s batch %4ld %s %s: %ld plans, %.1f s\n",
                      cases[i].model, cases[i].gpus, cases[i].cluster, cases[i].stack,
                      cases[i].global_batch, cases[i].limits[0] ? cases[i].limits[0] : "",
                      cases[i].limits[0] && cases[i].limits[1] ? cases[i].limits[1] : "",
                      plans, now_s() - start_s);
        assert_true(plans > 0);
    }
}

#define COVER(cases, rule) cover((cases), sizeof(cases) / sizeof *(cases), (rule))

static void whole_spaces_of_8_gpus(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"8b", "generic", "hgx-h100", 8, 512, 0, 1.0, {NULL}},
        {"8b", "megatron", "hgx-h200", 8, 63, 0, 1.0, {NULL}},
        {"8b", "torchtitan", "h100-96g-500w", 8, 64, 0, 1.0, {NULL}},
        {"gpt2-xl", "megatron-2021", "hgx-a100-40g", 8, 512, 0, 1.0, {NULL}},
        {"llama-7b", "nanotron", "h100-efa", 8, 64, 0, 1.0, {NULL}},
        {"qwen3-30b-a3b", "generic", "hgx-h200", 8, 128, 0, 1.0, {NULL}},
        {"deepseek-v2-lite", "generic", "hgx-h800", 8, 128, 0, 1.0, {NULL}},
        {"70b", "generic", "hgx-b200", 8, 16, 0, 1.0, {NULL}},
    };
    COVER(cases, &any);
}

static void whole_spaces_of_12_gpus(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"8b", "generic", "hgx-h100", 12, 96, 0, 1.0, {NULL}},
        {"gemma-2-9b", "generic", "gb200-nvl72", 12, 96, 0, 1.0, {NULL}},
        {"qwen3-30b-a3b", "megatron", "hgx-h100", 12, 48, 0, 1.0, {NULL}},
    };
    COVER(cases, &any);
}

static void whole_spaces_of_16_gpus(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"8b", "generic", "hgx-h100", 16, 512, 0, 1.0, {NULL}},
        {"llama-7b", "generic", "h100-efa", 16, 64, 0, 1.0, {NULL}},
        {"falcon-40b", "maxtext", "hgx-a100-80g", 16, 64, 0, 1.0, {NULL}},
        {"qwen3-30b-a3b", "generic", "hgx-h100", 16, 64, 0, 1.0, {NULL}},
        {"deepseek-v2-lite", "megatron", "gb200-nvl72", 16, 96, 0, 1.0, {NULL}},
    };
    COVER(cases, &any);
}

static void whole_spaces_of_64_gpus(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"8b", "generic", "hgx-h100", 64, 512, 0, 1.0, {NULL}},
        {"70b", "generic", "hgx-h100", 64, 128, 0, 1.0, {NULL}},
        {"70b", "megatron", "gb200-nvl72", 72, 144, 0, 1.0, {NULL}},
        {"mixtral-8x7b", "generic", "hgx-h100", 64, 128, 0, 1.0, {NULL}},
        {"gpt3-175b", "nanotron", "hgx-a100-80g", 64, 64, 0, 1.0, {NULL}},
    };
    COVER(cases, &any);
}

/* Frameworks take part of the plans, and of those some fit with probability 0.95. */
static void whole_spaces_of_64_gpus_of_frameworks(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"70b", "megatron", "hgx-h100", 64, 128, 0, 1.0, {NULL}},
        {"8b", "torchtitan", "hgx-h100", 64, 512, 0, 1.0, {NULL}},
        {"8b", "deepspeed", "hgx-a100-80g", 64, 512, 0, 1.0, {NULL}},
        {"8b", "nanotron", "hgx-h100", 64, 512, 0, 1.0, {NULL}},
        {"mixtral-8x7b", "nemo", "hgx-b200", 64, 128, 0, 1.0, {NULL}},
        {"70b", "maxtext", "hgx-h100", 64, 128, 0, 1.0, {NULL}},
    };
    COVER(cases, &safe);
}

/* Search spaces on 512 GPUs in which one or two axis sizes are fixed (`tp=8`) and all
 * other choices are free. */
static void parts_of_the_space_of_512_gpus(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"70b", "generic", "hgx-h100", 512, 512, 0, 1.0, {"tp=8", NULL}},
        {"70b", "generic", "hgx-h100", 512, 512, 0, 1.0, {"pp=1", NULL}},
        {"70b", "generic", "hgx-h100", 512, 512, 0, 1.0, {"tp=4", "cp=1", NULL}},
    };
    COVER(cases, &any);
}

/* The whole search space of Llama 70B on 512 GPUs. */
static void the_whole_space_of_512_gpus(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"70b", "generic", "hgx-h100", 512, 512, 0, 1.0, {NULL}},
    };
    COVER(cases, &any);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_spaces_of_8_gpus),
        cmocka_unit_test(whole_spaces_of_12_gpus),
        cmocka_unit_test(whole_spaces_of_16_gpus),
        cmocka_unit_test(whole_spaces_of_64_gpus),
        cmocka_unit_test(whole_spaces_of_64_gpus_of_frameworks),
        cmocka_unit_test(parts_of_the_space_of_512_gpus),
        cmocka_unit_test(the_whole_space_of_512_gpus),
    };
    cmocka_set_test_filter(getenv("ONLY")); /* a pattern of names; NULL: all */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
