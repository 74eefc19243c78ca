/* The fullest rank of experts: its rows, its exchanges and what they cost, by counting. */
#include "sim/step/prediction.h"

#include "tests/unit/planned_case.h"

#define EXPERT_RANKS 8
#define TOP_K        2 /* mixtral-8x7b chooses two experts */

static ms_plan mixture_plan(void)
{
    ms_plan plan = ms_plan_default(EXPERT_RANKS);
    plan.model = "mixtral-8x7b";
    plan.ep = EXPERT_RANKS;
    plan.global_batch = 2L * EXPERT_RANKS;
    ms_plan_fill_defaults(&plan);
    return plan;
}

static void the_fullest_rank_sends_and_computes_more(void **state)
{
    (void)state;
    ms_plan plan = mixture_plan();
    ms_bill even = layer_of(&plan);
    plan.expert_imbalance = 1.5;
    ms_bill uneven = layer_of(&plan);
    for (int i = 0; i < MS_NUM_BILL_EXCHANGES; i++)
        ASSERT_NEAR(uneven.segments.exchange_bytes[i],
                    1.5 * even.segments.exchange_bytes[i], 1e-12);
    /* FLOP are counted as a mean over ranks, parameters do not change */
    for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++)
        ASSERT_NEAR(uneven.flop[pass], even.flop[pass], 1e-12);
    ASSERT_NEAR(uneven.expert_params, even.expert_params, 1e-12);
    double attention_s = even.segments.forward_s[MS_SEGMENT_ATTENTION];
    ASSERT_NEAR(uneven.segments.forward_s[MS_SEGMENT_ATTENTION], attention_s, 1e-12);
    double experts_s = even.segments.forward_s[MS_SEGMENT_EXPERTS];
    assert_true(uneven.segments.forward_s[MS_SEGMENT_EXPERTS] > 1.4 * experts_s);
    assert_true(uneven.segments.forward_s[MS_SEGMENT_EXPERTS] < 1.5 * experts_s);
}

/* Rows that an expert receives are saved before and behind its first products: h + 3 i
 * values a row and rank (mixtral: h 4096, i 14336, 2 bytes), and the combine's result,
 * which the sender has, too. */
static void only_received_rows_take_more_memory(void **state)
{
    (void)state;
    ms_plan plan = mixture_plan();
    ms_bill even = layer_of(&plan);
    plan.expert_imbalance = 1.5;
    ms_bill uneven = layer_of(&plan);
    double rows = 8192.0 * TOP_K, row_bytes = 2.0 * (4096 + 3 * 14336);
    double more_bytes =
        uneven.memory.saved.activation_bytes - even.memory.saved.activation_bytes;
    ASSERT_NEAR(more_bytes, 0.5 * rows * row_bytes, 1e-9);
}

/* All-gather: the tokens of all ranks, once each; all-to-all: own tokens, k copies. */
static void gathered_tokens_are_all_ranks_tokens(void **state)
{
    (void)state;
    ms_plan plan = mixture_plan();
    ms_bill exchanged = layer_of(&plan);
    plan.dispatcher = MS_DISPATCH_ALL_GATHER;
    plan.expert_imbalance = 1.5; /* does not change what is gathered */
    ms_bill gathered = layer_of(&plan);
    for (int i = 0; i < MS_NUM_BILL_EXCHANGES; i++) {
        bool scatters = i == MS_EXCHANGE_COMBINE || i == MS_EXCHANGE_DISPATCH_BACKWARD;
        ASSERT_INT(exchanged.segments.exchange_collective[i], MS_ALL_TO_ALL);
        ASSERT_INT(gathered.segments.exchange_collective[i],
                   scatters ? MS_REDUCE_SCATTER : MS_ALL_GATHER);
        ASSERT_NEAR(gathered.segments.exchange_bytes[i],
                    exchanged.segments.exchange_bytes[i] / TOP_K * EXPERT_RANKS, 1e-12);
    }
}

static double step_of(const ms_plan *plan)
{
    ms_ctx *cx = test_cx();
    ms_workload *workload = NULL;
    ms_prediction prediction;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_predict(cx, workload, plan, &prediction), cx);
    ms_workload_close(workload);
    return prediction.step_s;
}

static void steps_grow_with_imbalance_up_to_the_capacity(void **state)
{
    (void)state;
    ms_plan plan = mixture_plan();
    double last_s = step_of(&plan);
    for (int i = 1; i <= 4; i++) {
        plan.expert_imbalance = 1.0 + 0.5 * i;
        double step_s = step_of(&plan);
        assert_true(step_s > last_s);
        last_s = step_s;
    }
    plan.expert_capacity = 1.5;
    double capped_s = step_of(&plan);
    plan.expert_imbalance = 1.5;
    ASSERT_NEAR(step_of(&plan), capped_s, 1e-12);
    plan.expert_imbalance = 1.0;
    assert_true(step_of(&plan) < capped_s);
    plan.pad_experts = true;
    ASSERT_NEAR(step_of(&plan), capped_s, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fullest_rank_sends_and_computes_more),
        cmocka_unit_test(only_received_rows_take_more_memory),
        cmocka_unit_test(gathered_tokens_are_all_ranks_tokens),
        cmocka_unit_test(steps_grow_with_imbalance_up_to_the_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
