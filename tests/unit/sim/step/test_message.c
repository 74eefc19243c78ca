/* Messages between pipeline stages: their bytes, and which ranks wait for them. */
#include "sim/step/message.h"

#include "sim/step/planned.h"
#include "tests/test.h"

/* For how long a send of 3 s holds the stage that sends: 0 if sends run beside compute,
 * otherwise once or twice the send's time. Framework (stack) and schedule decide
 * which. */
static void a_stage_waits_as_its_stack_says(void **state)
{
    (void)state;
    ms_stack stack = {.send_hold.value = 2, .interleaved_send_hold.value = 1};
    ASSERT_NEAR(ms_message_hold_s(&stack, MS_1F1B, 3), 6, 0);
    ASSERT_NEAR(ms_message_hold_s(&stack, MS_GPIPE, 3), 6, 0);
    ASSERT_NEAR(ms_message_hold_s(&stack, MS_INTERLEAVED, 3), 3, 0);
    ASSERT_NEAR(ms_message_hold_s(&stack, MS_ZB_H1, 3), 0, 0);
}

static ms_planned *planned_for(ms_ctx *cx, ms_plan *plan, const char *stack)
{
    *plan = ms_plan_default(16);
    plan->model = "gpt2-xl";
    plan->cluster = "hgx-a100-80g";
    plan->stack = stack;
    plan->size[MS_PP] = 4;
    plan->size[MS_TP] = 4;
    plan->size[MS_DP_SHARD] = 1;
    plan->sequence_length = 1024;
    plan->global_batch = 8;
    plan->zero = 0;
    plan->sequence_parallel = false;
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ms_planned *planned = MS_NEW(cx->arena, ms_planned);
    ms_planned_open(cx, workload, plan, planned);
    return planned;
}

/* A message has 1024 tokens of 1600 values of 2 bytes; Megatron-LM of 2021 sends a
 * quarter of it from each of 4 tp ranks. */
static void ranks_that_have_all_send_their_part(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan;
    const ms_planned *whole = planned_for(cx, &plan, "generic");
    ms_plan plan_2021;
    const ms_planned *parts = planned_for(cx, &plan_2021, "megatron-2021");
    double bytes = 1024.0 * 1600.0 * 2.0;
    ASSERT_NEAR(whole->blocks.wire_bytes, bytes, 0);
    ASSERT_NEAR(parts->blocks.send_bytes, bytes, 0);
    ASSERT_NEAR(parts->blocks.wire_bytes, bytes / 4, 0);
    double gather_s =
        ms_collective_s(&parts->links.law[MS_BILL_TP][MS_ALL_GATHER], bytes);
    ASSERT_NEAR(parts->blocks.send_s,
                ms_collective_s(&parts->links.send, bytes / 4) + gather_s, 1e-12);
    ms_workload_close(whole->workload);
    ms_workload_close(parts->workload);
}

/* Where sends hold a stage, the time of a send is added to each forward of every stage
 * but the last, and to each backward of every stage but the first. A message then has no
 * latency of its own. */
static void waiting_is_part_of_the_actions(void **state)
{
    (void)state;
    ms_plan plan;
    ms_planned *p = planned_for(test_cx(), &plan, "megatron-2021");
    const ms_split *split = p->pipeline.split;
    double hold_s = p->blocks.send_s;
    assert_true(hold_s > 0.0);
    for (int stage = 0; stage < 4; stage++) {
        int class = split->class_of_stage[stage];
        ms_stage_times with = ms_step_class_durations(&p->pipeline, p->sharding, class);
        ms_pipeline beside = p->pipeline;
        beside.send_hold_s = 0.0;
        ms_stage_times without = ms_step_class_durations(&beside, p->sharding, class);
        ASSERT_NEAR(with.forward_s - without.forward_s, stage < 3 ? hold_s : 0, 1e-9);
        ASSERT_NEAR(with.backward_s - without.backward_s, stage > 0 ? hold_s : 0, 1e-9);
        ASSERT_NEAR(with.last_backward_s - without.last_backward_s,
                    stage > 0 ? hold_s : 0, 1e-9);
        ASSERT_NEAR(with.send_forward_s, 0, 0);
    }
    ms_workload_close(p->workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stage_waits_as_its_stack_says),
        cmocka_unit_test(ranks_that_have_all_send_their_part),
        cmocka_unit_test(waiting_is_part_of_the_actions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
