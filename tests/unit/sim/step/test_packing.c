/* Packed and padded sequences in predictions, against plans of other lengths and sums. */
#include "sim/step/prediction.h"

#include "tests/unit/planned_case.h"

#include <string.h>

static ms_plan packed_plan(ms_packing packing, double mean_tokens,
                           double deviation_tokens)
{
    ms_plan plan = ms_plan_default(8);
    plan.model = "8b";
    plan.global_batch = 64;
    plan.size[MS_DP_SHARD] = 8;
    plan.packing = packing;
    plan.length_mean_tokens = mean_tokens;
    plan.length_deviation_tokens = deviation_tokens;
    ms_plan_fill_defaults(&plan);
    return plan;
}

static ms_prediction predict(const ms_plan *plan)
{
    ms_ctx *cx = test_cx();
    ms_workload *workload = NULL;
    ms_prediction prediction;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_predict(cx, workload, plan, &prediction), cx);
    ms_workload_close(workload);
    return prediction;
}

static void full_sequences_take_what_unpacked_ones_take(void **state)
{
    (void)state;
    ms_plan none = packed_plan(MS_NOT_PACKED, 0.0, 0.0);
    ms_prediction want = predict(&none);
    for (ms_packing packing = MS_PACKED; packing < MS_NUM_PACKINGS; packing++) {
        ms_plan plan = packed_plan(packing, 8192.0, 0.0);
        ms_prediction got = predict(&plan);
        ASSERT_NEAR(got.step_s, want.step_s, 1e-12);
        ASSERT_NEAR(got.peak_bytes, want.peak_bytes, 1e-12);
        ASSERT_NEAR(got.hfu_frac, want.hfu_frac, 1e-12);
        ASSERT_NEAR(got.useful_tokens_per_s, got.tokens_per_s, 1e-12);
    }
}

/* Llama-3 8B: 32 heads of width 128, forward 2 GEMMs, backward 5, 2 FLOP a multiply-add. */
static void attention_stays_within_packed_sequences(void **state)
{
    (void)state;
    ms_plan none = packed_plan(MS_NOT_PACKED, 0.0, 0.0);
    ms_plan plan = packed_plan(MS_PACKED, 512.0, 0.0);
    ms_bill whole = layer_of(&none), packed = layer_of(&plan);
    double pairs = 8192.0 * 8193.0 / 2.0 - 16.0 * (512.0 * 513.0 / 2.0);
    double pair_flop = 32 * 128 * 2.0;
    ASSERT_NEAR(whole.flop[MS_BILL_FORWARD] - packed.flop[MS_BILL_FORWARD],
                2.0 * pair_flop * pairs, 1e-9);
    ASSERT_NEAR(whole.flop[MS_BILL_BACKWARD] - packed.flop[MS_BILL_BACKWARD],
                5.0 * pair_flop * pairs, 1e-9);
    assert_true(packed.compute_s[MS_BILL_FORWARD] < whole.compute_s[MS_BILL_FORWARD]);
    ASSERT_NEAR(packed.memory.saved.activation_bytes, whole.memory.saved.activation_bytes,
                0.0);
}

/* Tokens meet those of their own sequence: pairs by the sum of squares. */
static void pairs_follow_the_sum_of_squares(void **state)
{
    (void)state;
    ms_plan equal = packed_plan(MS_PACKED, 600.0, 0.0);
    ms_plan spread = packed_plan(MS_PACKED, 600.0, 400.0);
    ms_ctx *cx = test_cx();
    ms_lengths lengths = ms_lengths_make(cx->arena, 600.0, 400.0, 8192.0);
    double more =
        layer_of(&spread).flop[MS_BILL_FORWARD] - layer_of(&equal).flop[MS_BILL_FORWARD];
    double pairs = 8192.0 * 0.5 * (ms_lengths_of_token(&lengths) - 600.0);
    ASSERT_NEAR(more, 2.0 * 32 * 128 * 2.0 * pairs, 1e-6);
    /* E[l^2] / E[l] = mean (1 + (400 / 600)^2), here without what is cut at 8192 */
    ASSERT_NEAR(ms_lengths_of_token(&lengths), 600.0 * (1.0 + 4.0 / 9.0), 0.005);
}

static void equal_padded_sequences_are_shorter_ones(void **state)
{
    (void)state;
    ms_plan padded = packed_plan(MS_PADDED, 1024.0, 0.0);
    ms_plan shorter = packed_plan(MS_NOT_PACKED, 0.0, 0.0);
    shorter.sequence_length = 1024;
    ms_prediction p = predict(&padded), want = predict(&shorter);
    ASSERT_NEAR(p.step_s, want.step_s, 1e-12);
    ASSERT_NEAR(p.tokens_per_s, want.tokens_per_s, 1e-12);
    ASSERT_NEAR(p.mfu_frac, want.mfu_frac, 1e-12);
    ASSERT_NEAR(p.hfu_frac, want.hfu_frac, 1e-12);
    ASSERT_NEAR(p.peak_bytes, want.peak_bytes, 1e-12);
}

/* Some micro-batch has the longest sequence of all; of log-normal lengths that is one of
 * the full length. */
static void memory_holds_the_longest_sequence(void **state)
{
    (void)state;
    ms_plan padded = packed_plan(MS_PADDED, 1024.0, 300.0);
    ms_plan full = packed_plan(MS_NOT_PACKED, 0.0, 0.0);
    ASSERT_NEAR(predict(&padded).peak_bytes, predict(&full).peak_bytes, 1e-12);
}

static void padding_grows_with_the_micro_batch(void **state)
{
    (void)state;
    double last_frac = 1.01;
    for (long microbatch = 1; microbatch <= 8; microbatch *= 2) {
        ms_plan plan = packed_plan(MS_PADDED, 600.0, 400.0);
        plan.microbatch = microbatch;
        ms_prediction p = predict(&plan);
        double frac = p.useful_tokens_per_s / p.tokens_per_s;
        assert_true(frac < last_frac);
        last_frac = frac;
        ASSERT_NEAR(p.useful_tokens_per_s * p.step_s, 64.0 * 600.0, 0.001);
    }
    assert_true(last_frac < 0.5);
    ms_plan plan = packed_plan(MS_PADDED_TO_SEQUENCE, 600.0, 400.0);
    ms_prediction p = predict(&plan);
    ASSERT_NEAR(p.useful_tokens_per_s / p.tokens_per_s, 600.0 / 8192.0, 0.001);
    plan.packing = MS_NOT_PACKED;
    ASSERT_NEAR(p.step_s, predict(&plan).step_s, 1e-12);
}

/* Lengths of unequal sums make ranks wait; more micro-batches even them out. */
static void ranks_wait_for_the_longest_sequences(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = packed_plan(MS_PACKED, 1500.0, 2500.0);
    double excess_frac[2];
    for (int i = 0; i < 2; i++) {
        plan.global_batch = i == 0 ? 8 : 32;
        ms_workload *workload = NULL;
        ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
        excess_frac[i] = ms_plan_bill_key(workload, &plan).attention_excess_frac;
        ms_workload_close(workload);
    }
    assert_true(excess_frac[0] > 0.1);
    ASSERT_NEAR(excess_frac[1], 0.5 * excess_frac[0], 1e-4);
    ms_plan alone = plan, eight = plan;
    alone.size[MS_DP_SHARD] = 1;
    alone.size[MS_TP] = 8;
    ms_bill few = layer_of(&alone), many = layer_of(&eight);
    ASSERT_NEAR(few.flop[MS_BILL_FORWARD] * 8.0, many.flop[MS_BILL_FORWARD], 1e-9);
}

/* Head-tail balance cuts every sequence over cp; contiguous chunks are uneven. */
static void context_ranks_are_balanced_by_sequences(void **state)
{
    (void)state;
    ms_plan plan = packed_plan(MS_PACKED, 8192.0, 0.0);
    plan.size[MS_DP_SHARD] = 2;
    plan.size[MS_CP] = 4;
    ms_plan none = plan;
    none.packing = MS_NOT_PACKED;
    for (int i = 0; i < 2; i++) {
        plan.cp_balance = none.cp_balance = i == 0 ? MS_CP_HEAD_TAIL : MS_CP_NONE;
        ms_bill want = layer_of(&none), got = layer_of(&plan);
        ASSERT_NEAR(got.compute_s[MS_BILL_FORWARD], want.compute_s[MS_BILL_FORWARD],
                    2e-5);
        ASSERT_NEAR(got.flop[MS_BILL_FORWARD], want.flop[MS_BILL_FORWARD], 1e-9);
    }
}

static void unknown_lengths_are_refused(void **state)
{
    (void)state;
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_plan plan = packed_plan(MS_PACKED, 0.0, 0.0);
    ms_workload *workload = NULL;
    ASSERT_INT(ms_workload_open(&cx, &plan, &workload), MS_EINPUT);
    assert_non_null(strstr(test_messages(&cx), "of unknown lengths"));
    ms_arena_close(cx.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_sequences_take_what_unpacked_ones_take),
        cmocka_unit_test(attention_stays_within_packed_sequences),
        cmocka_unit_test(pairs_follow_the_sum_of_squares),
        cmocka_unit_test(equal_padded_sequences_are_shorter_ones),
        cmocka_unit_test(memory_holds_the_longest_sequence),
        cmocka_unit_test(padding_grows_with_the_micro_batch),
        cmocka_unit_test(ranks_wait_for_the_longest_sequences),
        cmocka_unit_test(context_ranks_are_balanced_by_sequences),
        cmocka_unit_test(unknown_lengths_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
