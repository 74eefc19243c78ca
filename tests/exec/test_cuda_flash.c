/* Attention on tensor cores: bf16, widths 64 and 128. */
#include "tests/support/attention_cases.h"
#include "tests/test.h"

static void run(const ms_attention_case *cases, size_t num)
{
    for (size_t i = 0; i < num; i++)
        ms_attention_case_run(&cases[i], MS_REAL_BF16);
}

static void lengths_that_end_within_tiles(void **state)
{
    (void)state;
    const ms_attention_case cases[] = {
        {.batch = 1,
         .sequence = 1,
         .heads = 1,
         .kv_heads = 1,
         .width = 64,
         .value_width = 64},
        {.batch = 2,
         .sequence = 17,
         .heads = 2,
         .kv_heads = 1,
         .width = 128,
         .value_width = 128},
        {.batch = 1,
         .sequence = 100,
         .heads = 2,
         .kv_heads = 2,
         .width = 64,
         .value_width = 64},
        {.batch = 1,
         .sequence = 257,
         .heads = 1,
         .kv_heads = 1,
         .width = 128,
         .value_width = 128},
        {.batch = 1,
         .sequence = 257,
         .heads = 1,
         .kv_heads = 1,
         .width = 64,
         .value_width = 64},
    };
    run(cases, sizeof cases / sizeof *cases);
}

static void heads_that_share_keys(void **state)
{
    (void)state;
    const ms_attention_case cases[] = {
        {.batch = 2,
         .sequence = 33,
         .heads = 8,
         .kv_heads = 1,
         .width = 64,
         .value_width = 64},
        {.batch = 1,
         .sequence = 70,
         .heads = 8,
         .kv_heads = 2,
         .width = 128,
         .value_width = 128},
        {.batch = 2,
         .sequence = 65,
         .heads = 4,
         .kv_heads = 2,
         .width = 64,
         .value_width = 64},
    };
    run(cases, sizeof cases / sizeof *cases);
}

static void windows(void **state)
{
    (void)state;
    const ms_attention_case cases[] = {
        {.batch = 1,
         .sequence = 200,
         .heads = 2,
         .kv_heads = 1,
         .width = 64,
         .value_width = 64,
         .window = 1},
        {.batch = 1,
         .sequence = 200,
         .heads = 1,
         .kv_heads = 1,
         .width = 128,
         .value_width = 128,
         .window = 50},
        {.batch = 1,
         .sequence = 130,
         .heads = 1,
         .kv_heads = 1,
         .width = 128,
         .value_width = 128,
         .window = 1000},
        {.batch = 1,
         .sequence = 200,
         .heads = 1,
         .kv_heads = 1,
         .width = 64,
         .value_width = 64,
         .window = 70,
         .head_tail = true},
    };
    run(cases, sizeof cases / sizeof *cases);
}

/* Blocks before, at and after the queries; with head-tail balance each block is partly both. */
static void rings_equal_one_block(void **state)
{
    (void)state;
    const ms_attention_case cases[] = {
        {.batch = 1,
         .sequence = 66,
         .heads = 2,
         .kv_heads = 1,
         .width = 64,
         .value_width = 64,
         .num_ranks = 2},
        {.batch = 2,
         .sequence = 268,
         .heads = 1,
         .kv_heads = 1,
         .width = 64,
         .value_width = 64,
         .num_ranks = 2,
         .head_tail = true},
        {.batch = 1,
         .sequence = 234,
         .heads = 2,
         .kv_heads = 1,
         .width = 128,
         .value_width = 128,
         .num_ranks = 3,
         .head_tail = true},
        {.batch = 1,
         .sequence = 264,
         .heads = 1,
         .kv_heads = 1,
         .width = 128,
         .value_width = 128,
         .num_ranks = 4,
         .head_tail = true},
        {.batch = 1,
         .sequence = 132,
         .heads = 1,
         .kv_heads = 1,
         .width = 64,
         .value_width = 64,
         .window = 40,
         .num_ranks = 4},
        {.batch = 1,
         .sequence = 136,
         .heads = 1,
         .kv_heads = 1,
         .width = 128,
         .value_width = 128,
         .window = 30,
         .num_ranks = 4,
         .head_tail = true},
    };
    run(cases, sizeof cases / sizeof *cases);
}

/* Context parallelism that gathers keys: fewer queries than keys, which begin elsewhere. */
static void parts_of_queries_see_all_keys(void **state)
{
    (void)state;
    const ms_attention_case cases[] = {
        {.batch = 2,
         .sequence = 132,
         .heads = 2,
         .kv_heads = 1,
         .width = 64,
         .value_width = 64,
         .num_ranks = 2,
         .is_gathered = true},
        {.batch = 1,
         .sequence = 258,
         .heads = 2,
         .kv_heads = 2,
         .width = 128,
         .value_width = 128,
         .num_ranks = 3,
         .is_gathered = true,
         .window = 50},
        {.batch = 1,
         .sequence = 140,
         .heads = 2,
         .kv_heads = 1,
         .width = 128,
         .value_width = 128,
         .num_ranks = 2,
         .is_gathered = true,
         .head_tail = true},
    };
    run(cases, sizeof cases / sizeof *cases);
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
