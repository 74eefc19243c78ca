/* Columns that rows of published runs leave empty (GPUs, degrees of parallelism,
 * experts, batch) are filled in, or the row gets a reason why not. */
#include "sim/validate/pubrun_prices.h"

#include "tests/unit/run_rows.h"

static void degrees_that_are_left_open_are_those_of_the_framework(void **state)
{
    (void)state;
    const ms_pubrun *run =
        row_of(GPT_ROW("a", "", "2,,2,0,,2,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,"));
    ASSERT_TEXT(run->reason, NULL);
    ASSERT_INT(run->plan.gpus, 8); /* dp 2 x tp 2 x pp 2 */
    assert_non_null(strstr(run->defaults, "8 GPUs, as the stated degrees make"));
    run = row_of(GPT_ROW("a", "8", ",,,0,,,,1,1,3,none,bf16,,torchtitan,,1.5,"));
    ASSERT_TEXT(run->reason, NULL);
    ASSERT_INT(run->plan.size[MS_DP_SHARD], 8);
    reason_is(GPT_ROW("a", "8", ",,,0,,,,1,1,3,none,bf16,,Megatron-LM,,1.5,"),
              "incomplete: layout");
    reason_is(GPT_ROW("a", "", ",,2,0,,,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,"),
              "incomplete: number of GPUs");
}

/* An empty ep of 8 experts on 12 GPUs becomes 4, which divides both. */
static void experts_are_spread_over_what_divides_them(void **state)
{
    (void)state;
    const ms_pubrun *run = row_of(
        "a,Test,2024-01,Mixtral 8x7B,32,4096,32,8,128,14336,1,32000,0,8,2,14336,0,2048,1,"
        "24,12,A100 80GB,,,,1,0,,1,,1,,1,none,bf16,,Megatron-LM,,1.5,\n");
    ASSERT_TEXT(run->reason, NULL);
    ASSERT_INT(run->plan.ep, 4);
    assert_non_null(strstr(run->defaults, "ep 4"));
}

static bool is_over_memory(ms_pubrun_prices *prices, const ms_pubrun *run)
{
    ms_pubrun_score score;
    ASSERT_INT(ms_pubrun_price(prices, run, &score), MS_OK);
    return score.over_memory;
}

/* An empty batch is the largest that fits. The step time follows from the stated rate:
 * at 1000 tokens/s a GPU each sequence of 2048 tokens on a GPU takes 2.048 s. */
static void a_batch_that_is_left_open_is_the_most_that_fits(void **state)
{
    (void)state;
    ms_pubrun run = *row_of(
        "a,Test,2024-01,GPT X,24,4096,32,32,128,16384,0,51200,1,,,,,2048,,,8,A100 80GB,"
        ",,8,1,0,,1,,1,1,3,none,bf16,,torchtitan,1000,,\n");
    ASSERT_TEXT(run.reason, NULL);
    ASSERT_INT(run.plan.global_batch, 8);
    ms_pubrun_prices *prices = ms_pubrun_prices_open();
    ms_pubrun_fill_batch(test_cx()->arena, prices, &run);
    assert_true(run.plan.microbatch > 1);
    ASSERT_INT(run.plan.global_batch, 8 * run.plan.microbatch);
    ASSERT_NEAR(run.measured_step_s, 2.048 * (double)run.plan.microbatch, 1e-12);
    assert_non_null(strstr(run.defaults, "the most that fits"));
    assert_false(is_over_memory(prices, &run));
    ms_pubrun_prices_forget(prices);
    run.plan.microbatch *= 2;
    run.plan.global_batch *= 2;
    assert_true(is_over_memory(prices, &run));
    ms_pubrun_prices_close(prices);
}

/* A micro-batch that a row leaves open is the whole batch of a rank if that fits: 8 for
 * 64 sequences on 8 ranks. In torchtitan it is usually the whole, and is cut where the
 * whole does not fit: 2 of 12. In a pipeline it is 1. The measured step time stays as
 * stated. */
static void a_microbatch_that_is_left_open_is_the_most_of_the_batch_that_fits(
    void **state)
{
    (void)state;
    static const char row[] =
        "a,Test,2024-01,GPT X,%d,2048,16,16,128,8192,0,51200,1,,,,,2048,,%d,8,"
        "A100 80GB,,,%d,1,0,,%d,,1,1,1,none,bf16,,%s,,1.5,\n";
    static const struct {
        int layers, batch, dp, pp;
        const char *framework;
        long microbatch;
    } cases[] = {{4, 64, 8, 1, "Megatron-LM", 8},
                 {4, 24, 8, 1, "Megatron-LM", 1},
                 {4, 64, 2, 4, "Megatron-LM", 1},
                 {4, 96, 8, 1, "torchtitan", 12},
                 {96, 96, 8, 1, "torchtitan", 2}};
    ms_pubrun_prices *prices = ms_pubrun_prices_open();
    for (int i = 0; i < 5; i++) {
        ms_pubrun run = *row_of(ms_arena_printf(test_cx()->arena, row, cases[i].layers,
                                                cases[i].batch, cases[i].dp, cases[i].pp,
                                                cases[i].framework));
        ASSERT_TEXT(run.reason, NULL);
        ms_pubrun_fill_batch(test_cx()->arena, prices, &run);
        ASSERT_INT(run.plan.microbatch, cases[i].microbatch);
        ASSERT_INT(run.plan.global_batch, cases[i].batch);
        ASSERT_NEAR(run.measured_step_s, 1.5, 0.0);
        ms_pubrun_prices_forget(prices);
    }
    ms_pubrun_prices_close(prices);
}

/* Frameworks on plain PyTorch had no fused attention before its release of March 2023,
 * unless the row says so. */
static void eager_frameworks_had_no_fused_attention(void **state)
{
    (void)state;
    static const char row[] =
        "a,Test,%s,GPT X,4,2048,16,16,128,8192,0,51200,1,,,,,2048,1,8,8,"
        "A100 80GB,,8,,1,0,,1,,1,1,3,none,bf16,,%s,,1.5,\n";
    static const struct {
        const char *date, *framework;
        ms_attention_kernel attention;
    } cases[] = {{"2023-03", "PyTorch FSDP", MS_ATTENTION_UNFUSED},
                 {"2023-04", "PyTorch FSDP", MS_ATTENTION_FA2},
                 {"2021-09", "DeepSpeed", MS_ATTENTION_UNFUSED}};
    for (int i = 0; i < 3; i++) {
        const ms_pubrun *run = row_of(
            ms_arena_printf(test_cx()->arena, row, cases[i].date, cases[i].framework));
        ASSERT_TEXT(run->reason, NULL);
        ASSERT_INT(run->stack->attention, cases[i].attention);
    }
}

/* Recomputation that a row leaves open is the least that fits: GPT OSS 120B with
 * micro-batches of 4 sequences on 4 stages of 80 GB GPUs, whose recipe chooses what to
 * recompute. */
static void recomputation_that_is_left_open_is_the_least_that_fits(void **state)
{
    (void)state;
    ms_pubrun run = *row_of(
        "a,Test,2025-11,GPT OSS 120B,36,2880,64,8,64,,1,201088,0,128,4,2880,0,4096,4,512,"
        "64,H100,,16,,1,,,4,1F1B,1,8,,,bf16,,Megatron-Bridge,5630,,\n");
    ASSERT_TEXT(run.reason, NULL);
    assert_true(run.recompute_open);
    ms_pubrun_prices *prices = ms_pubrun_prices_open();
    assert_true(is_over_memory(prices, &run));
    ms_pubrun_fill_batch(test_cx()->arena, prices, &run);
    ASSERT_INT(run.plan.recompute, MS_RECOMPUTE_AUTO);
    assert_true(run.plan.recompute_budget_frac > 0.0);
    assert_non_null(strstr(run.defaults, "recompute auto"));
    assert_false(is_over_memory(prices, &run));
    run.plan.recompute_budget_frac = 1.0;
    assert_true(is_over_memory(prices, &run));
    ms_pubrun_prices_close(prices);
}

/* An empty batch follows from a stated step time and rate: 1000 tokens/s on each of 8
 * GPUs for 4.096 s are 16 sequences of 2048; the step time stays as stated. */
static void step_and_rate_tell_the_batch(void **state)
{
    (void)state;
    const ms_pubrun *run = row_of(
        "a,Test,2024-01,GPT X,8,1024,16,16,64,4096,0,51200,1,,,,,2048,1,,8,A100 80GB,,8,,"
        "1,0,,1,,1,1,1,none,bf16,,Megatron-LM,1000,4.096,\n");
    ASSERT_TEXT(run->reason, NULL);
    ASSERT_INT(run->plan.global_batch, 16);
    assert_false(run->batch_open);
    ASSERT_NEAR(run->measured_step_s, 4.096, 0);
}

/* A batch is rounded up to whole micro-batches if that adds 5 % at most, not if it
 * becomes eight times as large. */
static void batches_are_rounded_by_little(void **state)
{
    (void)state;
    static const char row[] =
        "a,Test,2024-01,GPT X,8,1024,16,16,64,4096,0,51200,1,,,,,2048,%d,%d,8,A100 80GB,,8,,"
        "1,0,,1,,1,1,1,none,bf16,,Megatron-LM,1000,,\n";
    ms_ctx *cx = test_cx();
    ASSERT_INT(row_of(ms_arena_printf(cx->arena, row, 2, 63))->plan.global_batch, 64);
    assert_non_null(
        strstr(row_of(ms_arena_printf(cx->arena, row, 16, 16))->reason, "plan: batch"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(degrees_that_are_left_open_are_those_of_the_framework),
        cmocka_unit_test(experts_are_spread_over_what_divides_them),
        cmocka_unit_test(a_batch_that_is_left_open_is_the_most_that_fits),
        cmocka_unit_test(
            a_microbatch_that_is_left_open_is_the_most_of_the_batch_that_fits),
        cmocka_unit_test(eager_frameworks_had_no_fused_attention),
        cmocka_unit_test(recomputation_that_is_left_open_is_the_least_that_fits),
        cmocka_unit_test(step_and_rate_tell_the_batch),
        cmocka_unit_test(batches_are_rounded_by_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
