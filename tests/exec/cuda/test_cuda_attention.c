/* Tests of the CUDA attention kernels without tensor cores: all number types, head
 * widths, ring blocks, windows, stored probabilities; and the attention nodes of whole
 * programs. */
#include "exec/cuda/cuda_attention.h"
#include "exec/cuda/cuda_flash.h"
#include "tests/support/attention_cases.h"
#include "tests/support/cuda_cases.h"
#include "tests/test.h"

static void run_in_all_types(const char *const *cases)
{
    for (int type = 0; type < MS_REAL_FP8; type++)
        ms_attention_cases_run(cases, (ms_real_type)type);
}

static void any_widths_and_lengths(void **state)
{
    (void)state;
    static const char *const cases[] = {"b 1 s 1 n 1 g 1 d 1 w 1",
                                        "b 2 s 17 n 2 g 1 d 8 w 8",
                                        "b 1 s 33 n 4 g 2 d 48 w 32",
                                        "b 1 s 100 n 1 g 1 d 192 w 128",
                                        "b 1 s 65 n 3 g 3 d 7 w 67",
                                        "b 1 s 129 n 8 g 1 d 5 w 3",
                                        NULL};
    run_in_all_types(cases);
}

static void windows_and_rings(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "b 1 s 90 n 2 g 1 d 9 w 12 window 1",
        "b 1 s 90 n 2 g 1 d 9 w 12 window 40",
        "b 2 s 68 n 2 g 2 d 12 w 9 head-tail",
        "b 1 s 66 n 2 g 1 d 16 w 16 ranks 2",
        "b 2 s 78 n 2 g 1 d 16 w 8 ranks 3 head-tail",
        "b 1 s 136 n 1 g 1 d 8 w 16 window 30 ranks 4 head-tail",
        NULL};
    run_in_all_types(cases);
}

/* Context parallelism that gathers keys: a rank has all keys and fewer queries, whose
 * first position is not 0. */
static void parts_of_queries_see_all_keys(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "b 2 s 66 n 2 g 1 d 9 w 9 ranks 2 gathered",
        "b 1 s 75 n 2 g 2 d 5 w 5 window 50 ranks 3 gathered",
        "b 1 s 68 n 2 g 1 d 5 w 5 ranks 2 gathered head-tail", NULL};
    run_in_all_types(cases);
}

static void probabilities_are_stored(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "b 2 s 37 n 4 g 2 d 10 w 6 unfused",
        "b 1 s 68 n 1 g 1 d 64 w 64 window 20 head-tail unfused", NULL};
    run_in_all_types(cases);
}

static void scores_have_a_soft_cap(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "b 2 s 37 n 4 g 2 d 10 w 6 cap 2", "b 1 s 70 n 2 g 1 d 64 w 64 cap 1",
        "b 1 s 68 n 1 g 1 d 64 w 64 cap 3 window 20 head-tail unfused",
        "b 1 s 66 n 2 g 1 d 16 w 16 cap 2 ranks 2", NULL};
    run_in_all_types(cases);
}

static void heads_have_slopes(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "b 2 s 37 n 4 g 4 d 10 w 6 alibi 4", "b 1 s 70 n 3 g 1 d 64 w 64 alibi 6 first 3",
        "b 1 s 68 n 2 g 1 d 64 w 64 alibi 12 first 7 head-tail unfused",
        "b 1 s 66 n 2 g 1 d 16 w 16 alibi 2 ranks 2", NULL};
    run_in_all_types(cases);
}

static void addresses_that_tensor_cores_cannot_use(void **state)
{
    (void)state;
    static const char *const cases[] = {"b 1 s 45 n 2 g 1 d 64 w 64 unaligned", NULL};
    ms_attention_cases_run(cases, MS_REAL_BF16);
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
    a.cap = 50;
    assert_false(ms_cuda_flash_can(&a));
    a.cap = 0;
    a.alibi_heads = 8;
    assert_false(ms_cuda_flash_can(&a));
    a.alibi_heads = 0;
    assert_true(ms_cuda_flash_can(&a));
    a.probabilities = &a;
    assert_false(ms_cuda_flash_can(&a));
}

/* Attention nodes of the small models' programs (head widths too small for tensor cores);
 * output, log-sum-exp and gradients are checked against the executed program. */
static void attention_of_programs(void **state)
{
    (void)state;
    ms_arena *arena = ms_arena_open();
    /* bf16 rounds stored probabilities or the saved output o besides the result */
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
        cmocka_unit_test(parts_of_queries_see_all_keys),
        cmocka_unit_test(probabilities_are_stored),
        cmocka_unit_test(scores_have_a_soft_cap),
        cmocka_unit_test(heads_have_slopes),
        cmocka_unit_test(addresses_that_tensor_cores_cannot_use),
        cmocka_unit_test(tensor_cores_are_used_where_they_can),
        cmocka_unit_test(attention_of_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
