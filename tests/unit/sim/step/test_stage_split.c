/* Stages whose backward is split into halves, layers that run in forward-backward
 * pairs, and stages that a rank has twice or from both ends of the model. */
#include "sim/step/traffic.h"

#include "tests/test.h"

static ms_planned *planned_for(ms_ctx *cx, ms_plan *plan)
{
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_plan_check(cx, plan, workload->model, MS_NOWHERE), cx);
    ms_planned *planned = MS_NEW(cx->arena, ms_planned);
    ms_planned_open(cx, workload, plan, planned);
    return planned;
}

/* A plan with four micro-batches of one sequence per rank, on pp x dp_shard GPUs;
 * V-shaped schedules have two stages a rank. */
static ms_plan plan_of(const char *model, ms_schedule_kind kind, long pp, long dp)
{
    ms_plan plan = ms_plan_default(pp * dp);
    plan.model = model;
    plan.size[MS_PP] = pp;
    plan.size[MS_DP_SHARD] = dp;
    plan.sequence_length = 1024;
    plan.global_batch = 4 * dp;
    plan.zero = 1;
    plan.schedule = kind;
    plan.virtual_stages = ms_schedule_traits_of(kind).least_virtual;
    return plan;
}

static ms_plan plan_with_experts(long ep)
{
    ms_plan plan = plan_of("qwen3-30b-a3b", MS_ZB_H1, 2, 8);
    plan.ep = ep;
    return plan;
}

/* ---- halves of a backward ---- */

/* Input half and weight half add up to the whole backward, except with ZeRO-2 and 3,
 * whose reductions for every micro-batch overlap with either half. */
static void halves_add_up_to_the_whole_backward(void **state)
{
    (void)state;
    static const ms_sharding whole[] = {MS_ZERO_0, MS_ZERO_1, MS_ZERO_3_NO_RESHARD};
    ms_plan plans[] = {plan_of("llama-3.2-1b", MS_ZB_H1, 2, 4), plan_with_experts(4),
                       plan_of("gpt2", MS_ZB_V, 2, 4)};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        ms_planned *p = planned_for(test_cx(), &plans[i]);
        for (int c = 0; c < p->pipeline.split->num_classes; c++)
            for (size_t s = 0; s < sizeof whole / sizeof *whole; s++) {
                ms_stage_times t = ms_stage_durations(p->workload, &p->stages[c],
                                                      whole[s], p->pipeline.send_s);
                ASSERT_NEAR(t.input_s + t.weight_s, t.backward_s, 1e-12);
                assert_true(t.input_s > t.weight_s && t.weight_s > 0.0);
                assert_true(t.last_weight_s >= t.weight_s);
            }
        ms_workload_close(p->workload);
    }
}

/* ---- pairs ---- */

/* Seconds of a pair, a forward of the first stage run together with a backward of the
 * last stage: `forward_s` and `backward_s` of each run alone, `saved_s` by running them
 * together, `hidden_s` of the exchanges that the pair can hide. */
typedef struct pair {
    double forward_s, backward_s, saved_s, hidden_s;
} pair;

static pair pair_of(const ms_planned *p)
{
    const ms_split *split = p->pipeline.split;
    int last = split->num_stages - 1;
    ms_stage_layout f = ms_split_layout(split, 0, p->plan->recompute, 0),
                    b = ms_split_layout(split, last, p->plan->recompute, 0);
    return (pair){
        .forward_s = ms_planned_stage(p, 0)->sum.forward_s,
        .backward_s = ms_planned_stage(p, last)->sum.backward_s,
        .saved_s = ms_pair_saved_s(p->workload, &p->blocks, &f, &b),
        .hidden_s = ms_planned_stage(p, 0)->sum.exchange_forward_s +
                    ms_planned_stage(p, last)->sum.exchange_backward_s,
    };
}

static void pairs_hide_exchanges_and_no_more(void **state)
{
    (void)state;
    static const long sizes[] = {2, 4, 8};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ms_plan plan = plan_with_experts(sizes[i]);
        plan.stack = "ideal"; /* no host, which pairs of such small layers wait for */
        ms_planned *p = planned_for(test_cx(), &plan);
        pair got = pair_of(p);
        double pair_s = got.forward_s + got.backward_s - got.saved_s;
        assert_true(got.saved_s > 0.0);
        assert_true(got.saved_s <= got.hidden_s * (1 + 1e-12));
        assert_true(pair_s >= got.forward_s && pair_s >= got.backward_s);
        ms_workload_close(p->workload);
    }
}

static void pairs_without_exchanges_save_nothing(void **state)
{
    (void)state;
    ms_plan plans[] = {plan_of("llama-3.2-1b", MS_ZB_H1, 2, 4), plan_with_experts(1)};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        ms_planned *p = planned_for(test_cx(), &plans[i]);
        pair got = pair_of(p);
        assert_true(fabs(got.saved_s) <= 1e-12 * got.forward_s);
        ms_workload_close(p->workload);
    }
}

/* ---- stages placed twice ---- */

static double params_on(const ms_planned *p, int rank)
{
    ms_rank_load load = ms_planned_load(test_cx(), p, rank);
    return load.dense_params + load.expert_params;
}

static double params_on_all(const ms_planned *p)
{
    double sum = 0.0;
    for (int rank = 0; rank < p->pipeline.split->num_ranks; rank++)
        sum += params_on(p, rank);
    return sum;
}

static double sum_of(const ms_traffic *traffic, ms_traffic_cause cause, double *seconds)
{
    double bytes = 0.0;
    for (int i = 0; i < traffic->num_entries; i++) {
        const ms_traffic_entry *entry = &traffic->entries[i];
        if (entry->cause != cause)
            continue;
        bytes += entry->count * entry->size_bytes;
        *seconds += entry->count * entry->one_s;
    }
    return bytes;
}

/* Pairs overlap only if tokens are exchanged, and nothing is moved per micro-batch. */
static void pairs_overlap_exchanges_of_tokens_only(void **state)
{
    (void)state;
    ms_plan dense = plan_of("llama-3.1-8b", MS_DUALPIPE, 2, 4),
            experts = plan_with_experts(4);
    experts.schedule = MS_DUALPIPE;
    ms_planned *d = planned_for(test_cx(), &dense), *e = planned_for(test_cx(), &experts);
    for (int how = 0; how < MS_NUM_SHARDINGS; how++) {
        bool once = how != MS_ZERO_2 && how != MS_ZERO_3;
        assert_false(ms_pipeline_overlaps_pairs(&d->pipeline, (ms_sharding)how));
        assert_int_equal(ms_pipeline_overlaps_pairs(&e->pipeline, (ms_sharding)how),
                         once);
    }
    ms_workload_close(d->workload);
    ms_workload_close(e->workload);
}

/* DualPipe holds every parameter of llama-3.1-8b (whose head is not tied) twice, and
 * each rank sends a shard of its gradients to the other copy: 4 bytes each, a quarter
 * of them. */
static void a_second_copy_doubles_parameters_and_exchanges_gradients(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan twice = plan_of("llama-3.1-8b", MS_DUALPIPE, 2, 4),
            once = plan_of("llama-3.1-8b", MS_1F1B, 2, 4);
    ms_planned *d = planned_for(cx, &twice), *p = planned_for(cx, &once);
    ASSERT_NEAR(params_on_all(d), 2.0 * params_on_all(p), 1e-12);
    for (int rank = 0; rank < 2; rank++) {
        ms_traffic traffic = ms_traffic_make(cx, d, rank);
        double seconds = 0.0, want_s = 0.0;
        double bytes = sum_of(&traffic, MS_CAUSE_REPLICA, &seconds);
        ASSERT_NEAR(bytes, 4.0 / 4.0 * params_on(d, rank), 1e-12);
        for (int chunk = 0; chunk < 2; chunk++) {
            int s = ms_split_stage(d->pipeline.split, rank, chunk);
            const ms_stage *stage = ms_planned_stage(d, s);
            int class = d->pipeline.split->class_of_stage[s];
            ms_stage_times plain = ms_stage_durations(d->workload, stage, MS_ZERO_1,
                                                      d->pipeline.send_s),
                           t = ms_step_class_durations(&d->pipeline, MS_ZERO_1, class);
            ASSERT_NEAR(t.after_rank_s - plain.after_rank_s,
                        ms_replica_s(&d->pipeline, stage, MS_ZERO_1), 1e-9);
            want_s += t.after_rank_s - plain.after_rank_s;
        }
        ASSERT_NEAR(seconds, want_s, 1e-9);
        traffic = ms_traffic_make(cx, p, rank);
        ASSERT_NEAR(sum_of(&traffic, MS_CAUSE_REPLICA, &seconds), 0.0, 0);
    }
    ms_workload_close(d->workload);
    ms_workload_close(p->workload);
}

/* ---- tied embeddings ---- */

/* Checks the collectives at the step's end: the gradient norm, and (`travels`) the
 * gradient of a tied embedding whose copies are on two ranks. */
static void check_tied(ms_schedule_kind kind, double copies, bool travels)
{
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of("gpt2", kind, 2, 4);
    ms_planned *p = planned_for(cx, &plan);
    double total = ms_model_params(p->workload->model).total,
           matrix = p->blocks.head_params, seconds = 0.0;
    ASSERT_NEAR(params_on_all(p), copies * total + travels * matrix, 1e-12);
    double norm_s = ms_collective_s(&p->links.world, MS_NORM_BYTES),
           more_s = p->pipeline.world_sync_s - norm_s;
    assert_true(travels ? more_s > 0.0 : more_s == 0.0);
    for (int rank = 0; rank < 2; rank++) {
        ms_traffic traffic = ms_traffic_make(cx, p, rank);
        seconds = 0.0;
        ASSERT_NEAR(sum_of(&traffic, MS_CAUSE_TIED, &seconds), travels * 4.0 * matrix,
                    1e-12);
        ASSERT_NEAR(seconds, travels ? more_s : 0.0, 1e-9);
    }
    ms_workload_close(p->workload);
}

static void a_tied_matrix_travels_only_between_ranks(void **state)
{
    (void)state;
    check_tied(MS_1F1B, 1.0, true);
    check_tied(MS_ZB_H2, 1.0, true);
    check_tied(MS_ZB_V, 1.0, false);
    check_tied(MS_DUALPIPEV, 1.0, false);
    check_tied(MS_DUALPIPE, 2.0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_add_up_to_the_whole_backward),
        cmocka_unit_test(pairs_hide_exchanges_and_no_more),
        cmocka_unit_test(pairs_without_exchanges_save_nothing),
        cmocka_unit_test(pairs_overlap_exchanges_of_tokens_only),
        cmocka_unit_test(a_second_copy_doubles_parameters_and_exchanges_gradients),
        cmocka_unit_test(a_tied_matrix_travels_only_between_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
