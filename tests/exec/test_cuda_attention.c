/* Attention on GPUs by plain arithmetic: all types, any widths, blocks, windows, stored probabilities; and attention of whole programs. */
#include "exec/cuda_attention.h"
#include "exec/cuda_flash.h"
#include "tests/support/attention_cases.h"
#include "tests/support/cuda_cases.h"
#include "tests/test.h"

static void run_in_all_types(const ms_attention_case *cases, size_t num)
{
    for (size_t i = 0; i < num; i++)
        for (int type = 0; type < MS_REAL_FP8; type++)
            ms_attention_case_run(&cases[i], (ms_real_type)type);
}

static void any_widths_and_lengths(void **state)
{
    (void)state;
    const ms_attention_case cases[] = {
        {.batch = 1,
         .sequence = 1,
         .heads = 1,
         .kv_heads = 1,
         .width = 1,
         .value_width = 1},
        {.batch = 2,
         .sequence = 17,
         .heads = 2,
         .kv_heads = 1,
         .width = 8,
         .value_width = 8},
        {.batch = 1,
         .sequence = 33,
         .heads = 4,
         .kv_heads = 2,
         .width = 48,
         .value_width = 32},
        {.batch = 1,
         .sequence = 100,
         .heads = 1,
         .kv_heads = 1,
         .width = 192,
         .value_width = 128},
        {.batch = 1,
         .sequence = 65,
         .heads = 3,
         .kv_heads = 3,
         .width = 7,
         .value_width = 67},
        {.batch = 1,
         .sequence = 129,
         .heads = 8,
         .kv_heads = 1,
         .width = 5,
         .value_width = 3},
    };
    run_in_all_types(cases, sizeof cases / sizeof *cases);
}

static void windows_and_rings(void **state)
{
    (void)state;
    const ms_attention_case cases[] = {
        {.batch = 1,
         .sequence = 90,
         .heads = 2,
         .kv_heads = 1,
         .width = 9,
         .value_width = 12,
         .window = 1},
        {.batch = 1,
         .sequence = 90,
         .heads = 2,
         .kv_heads = 1,
         .width = 9,
         .value_width = 12,
         .window = 40},
        {.batch = 2,
         .sequence = 68,
         .heads = 2,
         .kv_heads = 2,
         .width = 12,
         .value_width = 9,
         .head_tail = true},
        {.batch = 1,
         .sequence = 66,
         .heads = 2,
         .kv_heads = 1,
         .width = 16,
         .value_width = 16,
         .num_ranks = 2},
        {.batch = 2,
         .sequence = 78,
         .heads = 2,
         .kv_heads = 1,
         .width = 16,
         .value_width = 8,
         .num_ranks = 3,
         .head_tail = true},
        {.batch = 1,
         .sequence = 136,
         .heads = 1,
         .kv_heads = 1,
         .width = 8,
         .value_width = 16,
         .window = 30,
         .num_ranks = 4,
         .head_tail = true},
    };
    run_in_all_types(cases, sizeof cases / sizeof *cases);
}

static void probabilities_are_stored(void **state)
{
    (void)state;
    const ms_attention_case cases[] = {
        {.batch = 2,
         .sequence = 37,
         .heads = 4,
         .kv_heads = 2,
         .width = 10,
         .value_width = 6,
         .is_unfused = true},
        {.batch = 1,
         .sequence = 68,
         .heads = 1,
         .kv_heads = 1,
         .width = 64,
         .value_width = 64,
         .window = 20,
         .is_unfused = true,
         .head_tail = true},
    };
    run_in_all_types(cases, sizeof cases / sizeof *cases);
}

static void addresses_that_tensor_cores_cannot_use(void **state)
{
    (void)state;
    const ms_attention_case c = {.batch = 1,
                                 .sequence = 45,
                                 .heads = 2,
                                 .kv_heads = 1,
                                 .width = 64,
                                 .value_width = 64,
                                 .is_not_aligned = true};
    ms_attention_case_run(&c, MS_REAL_BF16);
}

static void tensor_cores_are_used_where_they_can(void **state)
{
    (void)state;
    ms_cuda_attention_args a = {
        .scalar = MS_SCALAR_BF16, .width = 128, .value_width = 128};
    assert_true(ms_cuda_flash_can(&a));
    a.width = a.value_width = 64;
    assert_true(ms_cuda_flash_can(&a));
    a.value_width = 128;
    assert_false(ms_cuda_flash_can(&a));
    a.width = a.value_width = 96;
    assert_false(ms_cuda_flash_can(&a));
    a.width = a.value_width = 64;
    a.scalar = MS_SCALAR_FP32;
    assert_false(ms_cuda_flash_can(&a));
    a.scalar = MS_SCALAR_BF16;
    a.gk = (char *)&a + 2;
    assert_false(ms_cuda_flash_can(&a));
    a.gk = NULL;
    a.probabilities = &a;
    assert_false(ms_cuda_flash_can(&a));
}

/* Widths of small models are small, all run plainly; o, lse and gradients are those of a program that ran. */
static void attention_of_programs(void **state)
{
    (void)state;
    ms_arena *arena = ms_arena_open();
    /* in bf16 stored probabilities, or o that was rounded, add their roundings */
    const ms_cuda_kernel forward = {.op = ms_cuda_attention,
                                    .workspace = ms_cuda_attention_workspace,
                                    .num_roundings = 2},
                         backward = {.op = ms_cuda_attention_grad,
                                     .workspace = ms_cuda_attention_workspace,
                                     .num_roundings = 2};
    assert_true(ms_cuda_cases_of_programs(arena, MS_OP_ATTENTION, &forward) > 0);
    assert_true(ms_cuda_cases_of_programs(arena, MS_OP_ATTENTION_GRAD, &backward) > 0);
    ms_arena_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_widths_and_lengths),
        cmocka_unit_test(windows_and_rings),
        cmocka_unit_test(probabilities_are_stored),
        cmocka_unit_test(addresses_that_tensor_cores_cannot_use),
        cmocka_unit_test(tensor_cores_are_used_where_they_can),
        cmocka_unit_test(attention_of_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
