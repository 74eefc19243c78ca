/* Tests that the collectives of explanations (sim/explain/explain.h) sum to what
 * predictions report, in bytes and seconds, and that each has its reasons; over a range
 * of plans. */
#include "sim/explain/explain.h"

#include "tests/oracle/explained_plans.h"

/* ---- totals over a range of plans ---- */

/* One plan, which stays on two lines. */
#define ROW(...)                                                                         \
    {                                                                                    \
        __VA_ARGS__                                                                      \
    }

static const struct {
    const char *model;
    long size[MS_NUM_PLAN_AXES];
    long ep, etp, zero;
    bool reshard, async;
    long virtual_stages;
    ms_recompute recompute;
    long recompute_layers;
    ms_cp_method cp_method;
    ms_schedule_kind schedule;
} plans[] = {
    ROW("llama-3.1-8b", {1, 1, 8, 1, 1}, 1, 1, 3, true, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_1F1B),
    ROW("llama-3.1-8b", {1, 1, 8, 1, 1}, 1, 1, 2, true, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_1F1B),
    ROW("llama-3.1-8b", {1, 2, 2, 1, 4}, 1, 1, 1, true, true, 1, MS_RECOMPUTE_SELECTIVE,
        0, MS_CP_ALL_GATHER, MS_1F1B),
    ROW("llama-3.1-8b", {1, 2, 2, 1, 4}, 1, 1, 0, true, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_1F1B),
    ROW("llama-3.1-8b", {1, 1, 2, 4, 2}, 1, 1, 3, true, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_1F1B),
    ROW("llama-3.1-8b", {4, 1, 2, 1, 2}, 1, 1, 1, true, false, 2, MS_RECOMPUTE_FULL, 2,
        MS_CP_ALL_GATHER, MS_INTERLEAVED),
    ROW("llama-3.1-8b", {1, 1, 1, 1, 8}, 1, 1, 0, true, false, 1, MS_RECOMPUTE_FULL, 0,
        MS_CP_ALL_GATHER, MS_1F1B),
    ROW("llama-3.1-8b", {1, 1, 2, 4, 2}, 1, 1, 1, true, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_RING, MS_1F1B),
    ROW("llama-3.1-8b", {1, 1, 2, 4, 2}, 1, 1, 1, true, false, 1, MS_RECOMPUTE_FULL, 0,
        MS_CP_ULYSSES, MS_1F1B),
    ROW("gpt2", {1, 1, 4, 1, 2}, 1, 1, 3, true, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_1F1B),
    ROW("gpt2", {1, 1, 8, 1, 1}, 1, 1, 0, true, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_1F1B),
    ROW("gpt2", {2, 1, 4, 1, 2}, 1, 1, 1, true, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_1F1B),
    ROW("gemma-2-2b", {1, 1, 4, 1, 2}, 1, 1, 3, false, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_1F1B),
    ROW("mixtral-8x7b", {1, 1, 16, 1, 1}, 1, 1, 3, true, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_1F1B),
    ROW("mixtral-8x7b", {1, 2, 4, 1, 2}, 1, 1, 1, true, true, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_1F1B),
    ROW("mixtral-8x7b", {2, 1, 4, 1, 2}, 4, 2, 2, true, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_1F1B),
    ROW("mixtral-8x7b", {1, 2, 4, 1, 2}, 8, 1, 0, true, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_1F1B),
    ROW("deepseek-v2-lite", {3, 1, 8, 1, 1}, 8, 1, 1, true, false, 1, MS_RECOMPUTE_FULL,
        0, MS_CP_ALL_GATHER, MS_1F1B),
    ROW("llama-3.1-8b", {2, 1, 4, 1, 2}, 1, 1, 1, true, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_DUALPIPE),
    ROW("qwen3-30b-a3b", {4, 1, 4, 1, 2}, 4, 1, 0, true, false, 1, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_DUALPIPE),
    ROW("gpt2", {2, 1, 4, 1, 2}, 1, 1, 2, true, false, 2, MS_RECOMPUTE_NONE, 0,
        MS_CP_ALL_GATHER, MS_ZB_V),
};

static ms_plan plan_of(size_t row)
{
    ms_plan plan = ms_plan_default(1);
    plan.gpus = 1;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        plan.gpus *= plan.size[axis] = plans[row].size[axis];
    plan.model = plans[row].model;
    plan.ep = plans[row].ep;
    plan.etp = plans[row].etp;
    plan.sequence_length = 1024;
    plan.global_batch = 8 * ms_plan_data_parallel(&plan);
    plan.zero = plans[row].zero;
    plan.reshard_after_forward = plans[row].reshard;
    plan.sequence_parallel = plan.size[MS_TP] > 1;
    plan.async_tp = plans[row].async;
    plan.virtual_stages = plans[row].virtual_stages;
    plan.schedule = plans[row].schedule;
    plan.recompute = plans[row].recompute;
    plan.recompute_layers = plans[row].recompute_layers;
    plan.cp_method = plans[row].cp_method;
    return plan;
}

static ms_axis_prediction sum_of(const ms_explanation *e, const char *axis)
{
    ms_axis_prediction sum = {0};
    for (int i = 0; i < e->num_collectives; i++) {
        const ms_explain_collective *c = &e->collectives[i];
        if (c->rank != e->rank || strcmp(c->axis, axis) != 0 ||
            c->entry->phase == MS_TRAFFIC_OPTIMIZER)
            continue;
        sum.bytes += c->entry->count * c->entry->wire_bytes;
        sum.nic_bytes += c->entry->count * c->entry->nic_bytes;
        sum.seconds += c->entry->count * c->entry->one_s;
        sum.exposed_s += c->entry->exposed_s;
    }
    return sum;
}

/* Bytes of explained collectives sum to the predicted bytes per axis, and their exposed
 * seconds to the step's exposed communication. */
static void explanations_sum_to_the_axes_of_predictions(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof plans / sizeof *plans; row++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = plan_of(row);
        const ms_explanation *e = explain(cx, &plan, -1);
        const ms_prediction *p = &e->prediction;
        double bytes = 0.0, exposed_s = 0.0;
        for (int i = 0; i < p->num_axes; i++) {
            ms_axis_prediction sum = sum_of(e, p->axes[i].axis);
            ASSERT_NEAR(sum.bytes, p->axes[i].bytes, 1e-12);
            ASSERT_NEAR(sum.nic_bytes, p->axes[i].nic_bytes, 1e-12);
            ASSERT_NEAR(sum.seconds, p->axes[i].seconds, 1e-12);
            ASSERT_NEAR(sum.exposed_s, p->axes[i].exposed_s, 1e-12);
            bytes += p->axes[i].bytes;
            exposed_s += p->axes[i].exposed_s;
        }
        double all = 0.0;
        for (int i = 0; i < e->num_collectives; i++)
            if (e->collectives[i].rank == e->rank &&
                e->collectives[i].entry->phase != MS_TRAFFIC_OPTIMIZER)
                all +=
                    e->collectives[i].entry->count * e->collectives[i].entry->wire_bytes;
        ASSERT_NEAR(bytes, all, 1e-12); /* every collective belongs to a listed axis */
        if (fabs(exposed_s - p->exposed_comm_s) > 1e-9 * p->step_s)
            fail_msg("plan %zu: axes expose %.12g s, the step %.12g s", row, exposed_s,
                     p->exposed_comm_s);
        close_explained(e);
    }
}

/* Explained seconds of parameter gathers and gradient reductions equal those in the costs
 * of the pipeline stages. */
static void states_take_the_seconds_of_the_stages(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof plans / sizeof *plans; row++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = plan_of(row);
        const ms_explanation *e = explain(cx, &plan, -1);
        const ms_split *split = e->planned->pipeline.split;
        ms_block_cost sum = {0};
        double replicas_s = 0.0;
        for (int chunk = 0; chunk < split->num_chunks; chunk++) {
            int s = ms_split_stage(split, e->rank, chunk);
            const ms_block_cost *stage = &ms_planned_stage(e->planned, s)->sum;
            if (plan.schedule == MS_DUALPIPE)
                replicas_s +=
                    ms_replica_s(&e->planned->pipeline, ms_planned_stage(e->planned, s),
                                 e->planned->sharding);
            sum.gather_s += stage->gather_s;
            sum.reduce_s += stage->reduce_s;
            sum.all_reduce_s += stage->all_reduce_s;
            sum.replicate_s += stage->replicate_s;
            sum.tp_sync_s += stage->tp_sync_s;
        }
        double m = (double)ms_plan_microbatches(&plan), gathers = 1.0, reductions = 1.0;
        if (plan.zero == 3 && plan.reshard_after_forward)
            gathers = 2.0 * m;
        if (plan.zero == 2 || gathers > 1.0)
            reductions = m;
        double want =
            gathers * sum.gather_s + reductions * sum.reduce_s + sum.replicate_s;
        if (plan.zero == 0)
            want = sum.all_reduce_s;
        double got = 0.0;
        for (int i = 0; i < e->traffic.num_entries; i++)
            if (e->traffic.entries[i].phase == MS_TRAFFIC_PARAMS ||
                e->traffic.entries[i].phase == MS_TRAFFIC_GRADS)
                got += e->traffic.entries[i].count * e->traffic.entries[i].one_s;
        ASSERT_NEAR(got, want + sum.tp_sync_s + replicas_s, 1e-9);
        close_explained(e);
    }
}

/* Each collective of a layer program has as many reasons (placement changes) as
 * occurrences per block. */
static void every_collective_has_its_reasons(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof plans / sizeof *plans; row++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = plan_of(row);
        const ms_explanation *e = explain(cx, &plan, -1);
        for (int i = 0; i < e->num_collectives; i++) {
            const ms_explain_collective *c = &e->collectives[i];
            if (c->entry->cause == MS_CAUSE_NODES && c->entry->collective == MS_SEND)
                /* one attention node is the reason for many sends of a ring */
                assert_true(c->num_causes >= 1);
            else
                ASSERT_INT(c->num_causes, (long)c->entry->per_block);
            for (int k = 0; k < c->num_causes; k++)
                assert_true(strlen(c->causes[k].why) > 10);
        }
        close_explained(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explanations_sum_to_the_axes_of_predictions),
        cmocka_unit_test(states_take_the_seconds_of_the_stages),
        cmocka_unit_test(every_collective_has_its_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
