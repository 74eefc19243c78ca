/* The optimizer waits for the norm of all ranks' gradients, or only for its own rank's
 * gradients. */
#include "sim/step/planned.h"

#include "tests/test.h"

#define RANKS        4
#define MICROBATCHES 12

typedef struct bench {
    ms_plan plan;
    ms_stack habits;
    ms_planned planned;
} bench;

/* A plan of llama-3.2-1b on pp 4 x dp 2, with the stack `generic` except for how
 * optimizers wait for each other. */
static bench *open_bench(ms_ctx *cx, ms_schedule_kind kind, ms_optimizer_sync sync)
{
    bench *b = MS_NEW(cx->arena, bench);
    b->plan = ms_plan_default(2L * RANKS);
    b->plan.model = "llama-3.2-1b";
    b->plan.size[MS_PP] = RANKS;
    b->plan.size[MS_DP_SHARD] = 2;
    b->plan.sequence_length = 1024;
    b->plan.global_batch = 2L * MICROBATCHES;
    b->plan.zero = 1;
    b->plan.schedule = kind;
    b->plan.virtual_stages = ms_schedule_traits_of(kind).least_virtual;
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, &b->plan, &workload), cx);
    ASSERT_OK(ms_plan_check(cx, &b->plan, workload->model, MS_NOWHERE), cx);
    b->habits = *workload->stack;
    b->habits.optimizer_sync = sync;
    workload->stack = &b->habits;
    ms_planned_open(cx, workload, &b->plan, &b->planned);
    return b;
}

/* ---- real durations ---- */

static double update_s(ms_ctx *cx, const ms_planned *p, int rank)
{
    ms_rank_load load = ms_planned_load(cx, p, rank);
    double params = ms_rank_params(&load, &p->pipeline.shards, true);
    return ms_stream_s(&p->workload->pricer,
                       params * p->workload->stack->optimizer_bytes.value);
}

static void without_a_norm_a_step_is_the_longest_span(void **state)
{
    (void)state;
    static const ms_schedule_kind kinds[] = {MS_1F1B, MS_ZB_H1, MS_ZB_H2, MS_ZB_V};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        ms_ctx *cx = test_cx();
        bench *b = open_bench(cx, kinds[i], MS_SYNC_POST_VALIDATION);
        const ms_planned *p = &b->planned;
        ms_stage_times *times =
            MS_NEW_ARRAY(cx->arena, p->schedule->num_stages, ms_stage_times);
        ms_step_durations(&p->pipeline, p->sharding, cx->arena, times);
        double start_s[RANKS], end_s[RANKS], longest_s = 0.0;
        ms_replay_result replay = {.start_s = start_s, .end_s = end_s};
        ms_replay(p->schedule, times, cx->arena, &replay);
        for (int r = 0; r < RANKS; r++)
            longest_s = fmax(longest_s, end_s[r] - start_s[r] + update_s(cx, p, r));
        double step_s =
            ms_step_exact_s(&p->pipeline, p->sharding, p->schedule, cx->arena);
        ASSERT_NEAR(step_s, longest_s, 1e-12);
        assert_true(ms_step_bound_s(&p->pipeline, p->sharding, cx->arena) <= step_s);
        b->habits.optimizer_sync = MS_SYNC_GLOBAL;
        int slowest;
        ASSERT_NEAR(ms_step_exact_s(&p->pipeline, p->sharding, p->schedule, cx->arena),
                    replay.makespan_s +
                        ms_optimizer_s(&p->pipeline, p->sharding, &slowest),
                    1e-12);
        ms_workload_close(p->workload);
    }
}

/* ---- equal halves ---- */

/* Seconds of a step without its optimizer, when forward, input gradient and weight
 * gradient take 1 s each and sends nothing. */
static double plain_step_s(ms_schedule_kind kind, ms_optimizer_sync sync)
{
    ms_ctx *cx = test_cx();
    bench *b = open_bench(cx, kind, sync);
    const ms_planned *p = &b->planned;
    ms_stage_times *times =
        MS_NEW_ARRAY(cx->arena, p->schedule->num_stages, ms_stage_times);
    for (int s = 0; s < p->schedule->num_stages; s++)
        times[s] = (ms_stage_times){.forward_s = 1,
                                    .first_forward_s = 1,
                                    .backward_s = 2,
                                    .last_backward_s = 2,
                                    .input_s = 1,
                                    .weight_s = 1,
                                    .last_weight_s = 1};
    ms_step_time time =
        ms_step_time_of(&p->pipeline, p->sharding, p->schedule, times, cx->arena);
    ms_workload_close(p->workload);
    return time.step_s - time.optimizer_s;
}

/* Zero-bubble schedules whose passes F, I and W take 1 s each (Qi et al. 2023). m
 * micro-batches are 3 m s of work on every rank. ZB-H2 does this work without a gap, but
 * its step is as short only if a rank's next step may begin before the other ranks end
 * theirs (post-validation). If every step ends on all p ranks together, it is p - 1 s
 * longer, in ZB-H2 as in ZB-H1. */
static void zero_bubbles_need_steps_that_overlap(void **state)
{
    (void)state;
    double work_s = 3.0 * MICROBATCHES;
    ASSERT_NEAR(plain_step_s(MS_ZB_H2, MS_SYNC_POST_VALIDATION), work_s, 1e-9);
    ASSERT_NEAR(plain_step_s(MS_ZB_H2, MS_SYNC_GLOBAL), work_s + RANKS - 1, 1e-9);
    ASSERT_NEAR(plain_step_s(MS_ZB_H1, MS_SYNC_GLOBAL), work_s + RANKS - 1, 1e-9);
    ASSERT_NEAR(plain_step_s(MS_ZB_H1, MS_SYNC_POST_VALIDATION), work_s + RANKS - 1,
                1e-9);
    ASSERT_NEAR(plain_step_s(MS_1F1B, MS_SYNC_GLOBAL), work_s + 3.0 * (RANKS - 1), 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_norm_a_step_is_the_longest_span),
        cmocka_unit_test(zero_bubbles_need_steps_that_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
