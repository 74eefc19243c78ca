/* Replay of pipeline schedules, on cases small enough to follow by hand, and on
 * published schedules with known times. */
#include "sim/step/replay.h"

#include "tests/test.h"

static ms_stage_times plain(double forward_s, double backward_s)
{
    return (ms_stage_times){.forward_s = forward_s,
                            .first_forward_s = forward_s,
                            .backward_s = backward_s,
                            .last_backward_s = backward_s};
}

static double makespan(ms_schedule_shape shape, const ms_stage_times *times)
{
    ms_ctx *cx = test_cx();
    ms_replay_result result = {0};
    ms_replay(ms_schedule_make(cx->arena, &shape), times, cx->arena, &result);
    return result.makespan_s;
}

static ms_stage_times stage(double forward_s, double first_forward_s, double backward_s,
                            double last_backward_s, double send_forward_s,
                            double send_backward_s)
{
    return (ms_stage_times){.forward_s = forward_s,
                            .first_forward_s = first_forward_s,
                            .backward_s = backward_s,
                            .last_backward_s = last_backward_s,
                            .send_forward_s = send_forward_s,
                            .send_backward_s = send_backward_s};
}

static void one_rank_runs_its_work_without_a_gap(void **state)
{
    (void)state;
    ms_stage_times times[1] = {stage(1.0, 1.5, 2.0, 2.25, 100.0, 100.0)};
    ASSERT_NEAR(makespan((ms_schedule_shape){.kind = MS_1F1B,
                                             .num_ranks = 1,
                                             .num_microbatches = 4,
                                             .virtual_stages = 1,
                                             .group = 0},
                         times),
                1.5 + 3 * 1.0 + 3 * 2.0 + 2.25, 0.0);
    ASSERT_NEAR(makespan((ms_schedule_shape){.kind = MS_GPIPE,
                                             .num_ranks = 1,
                                             .num_microbatches = 1,
                                             .virtual_stages = 1,
                                             .group = 0},
                         times),
                1.5 + 2.25, 0.0);
}

/* Timeline of 2 ranks in seconds (F forward, B backward). Rank 0: F0 0-1, F1 1-2,
 * waits; rank 1: F0 1.5-2.5, B0 2.5-4.5, F1 4.5-5.5, B1 5.5-7.5; rank 0: B0 4.75-6.75,
 * B1 7.75-9.75. */
static void latency_delays_the_receiver_and_not_the_sender(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_stage_times times[2] = {stage(1.0, 1.0, 2.0, 2.0, 0.5, 9.0),
                               stage(1.0, 1.0, 2.0, 2.0, 9.0, 0.25)};
    ms_schedule_shape shape = {.kind = MS_1F1B,
                               .num_ranks = 2,
                               .num_microbatches = 2,
                               .virtual_stages = 1,
                               .group = 0};
    double end_s[2], busy_s[2];
    ms_replay_result result = {.end_s = end_s, .busy_s = busy_s};
    ms_replay(ms_schedule_make(cx->arena, &shape), times, cx->arena, &result);
    ASSERT_NEAR(end_s[0], 9.75, 0.0);
    ASSERT_NEAR(end_s[1], 7.5, 0.0);
    ASSERT_NEAR(busy_s[0], 6.0, 0.0);
    ASSERT_INT(result.last_rank, 0);
    ASSERT_NEAR(result.makespan_s, 9.75, 0.0);
}

/* In an interleaved schedule with chunks 0 1 2 3 on ranks 0 1 0 1, a micro-batch
 * visits the ranks 0 1 0 1 1 0 1 0 and pays latency on three forward and three
 * backward messages, including those from the last rank to the first. */
static void wrap_edges_of_interleaved_schedules_pay_latency(void **state)
{
    (void)state;
    ms_stage_times times[4];
    for (int s = 0; s < 4; s++)
        times[s] = (ms_stage_times){.forward_s = 1.0,
                                    .first_forward_s = 1.0,
                                    .backward_s = 2.0,
                                    .last_backward_s = 2.0,
                                    .send_forward_s = 0.125,
                                    .send_backward_s = 0.25};
    ASSERT_NEAR(makespan((ms_schedule_shape){.kind = MS_INTERLEAVED,
                                             .num_ranks = 2,
                                             .num_microbatches = 1,
                                             .virtual_stages = 2,
                                             .group = 0},
                         times),
                4 * 3.0 + 3 * 0.125 + 3 * 0.25, 0.0);
}

static void first_forward_and_last_backward_of_a_stage_may_differ(void **state)
{
    (void)state;
    ms_stage_times times[2] = {stage(1.0, 4.0, 2.0, 2.0, 0.0, 0.0),
                               stage(1.0, 1.0, 2.0, 7.0, 0.0, 0.0)};
    /* Timeline (F forward, B backward). Rank 0: F0 0-4, F1 4-5; rank 1: F0 4-5, B0
     * 5-7, F1 7-8, B1 8-15; rank 0: B0 7-9, B1 15-17. */
    ASSERT_NEAR(makespan((ms_schedule_shape){.kind = MS_1F1B,
                                             .num_ranks = 2,
                                             .num_microbatches = 2,
                                             .virtual_stages = 1,
                                             .group = 0},
                         times),
                17.0, 0.0);
}

/* Makespans of schedules with forward 1 and backward 2 per stage, in the order of
 * PyTorch's torch/distributed/pipelining. */
static void published_schedules_take_their_known_time(void **state)
{
    (void)state;
    ms_stage_times times[8];
    for (int s = 0; s < 8; s++)
        times[s] = plain(1.0, 2.0);
    static const struct {
        ms_schedule_kind kind;
        int microbatches, virtual_stages, group;
        double makespan_s;
    } cases[] = {{MS_GPIPE, 8, 1, 0, 33.0},
                 {MS_1F1B, 8, 1, 0, 33.0},
                 {MS_INTERLEAVED, 8, 2, 4, 57.0},
                 {MS_INTERLEAVED, 10, 2, 5, 69.0},
                 {MS_INTERLEAVED, 3, 2, 3, 30.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_schedule_shape shape = {.kind = cases[i].kind,
                                   .num_ranks = 4,
                                   .num_microbatches = cases[i].microbatches,
                                   .virtual_stages = cases[i].virtual_stages,
                                   .group = cases[i].group};
        ASSERT_NEAR(makespan(shape, times), cases[i].makespan_s, 0.0);
    }
}

/* In 1F1B with 4 ranks and 8 micro-batches, a slow first stage is partly hidden by the
 * warm-up. */
static void a_slow_early_stage_beats_the_usual_closed_form(void **state)
{
    (void)state;
    ms_stage_times times[4] = {plain(2.0, 1.0), plain(1.0, 1.0), plain(1.0, 1.0),
                               plain(1.0, 1.0)};
    double got_s = makespan((ms_schedule_shape){.kind = MS_1F1B,
                                                .num_ranks = 4,
                                                .num_microbatches = 8,
                                                .virtual_stages = 1,
                                                .group = 0},
                            times);
    double usual_s = 3.0 + 3 * 2.0 + 7 * 3.0;
    assert_true(got_s < usual_s - 1.0);
    assert_true(got_s >= 8 * 3.0); /* rank 0 alone works 8 x 3 s */
}

static void every_action_has_its_end(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_stage_times times[2] = {plain(1.0, 2.0), plain(1.0, 2.0)};
    ms_schedule_shape shape = {.kind = MS_1F1B,
                               .num_ranks = 2,
                               .num_microbatches = 2,
                               .virtual_stages = 1,
                               .group = 0};
    double end_s[8];
    ms_replay_actions(ms_schedule_make(cx->arena, &shape), times, cx->arena, end_s);
    /* ends of F0 F1 B0 B1 on rank 0, then of F0 B0 F1 B1 on rank 1 */
    const double want_s[8] = {1, 2, 6, 9, 2, 4, 5, 7};
    for (int i = 0; i < 8; i++)
        ASSERT_NEAR(end_s[i], want_s[i], 0.0);
}

static void the_scratch_arena_is_left_as_it_was(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_stage_times times[4] = {plain(1, 2), plain(1, 2), plain(1, 2), plain(1, 2)};
    ms_schedule_shape shape = {.kind = MS_1F1B,
                               .num_ranks = 4,
                               .num_microbatches = 64,
                               .virtual_stages = 1,
                               .group = 0};
    ms_schedule *schedule = ms_schedule_make(cx->arena, &shape);
    ms_arena_mark before = ms_arena_save(cx->arena);
    ms_replay_result result = {0};
    ms_replay(schedule, times, cx->arena, &result);
    ms_arena_mark after = ms_arena_save(cx->arena);
    assert_ptr_equal(before.block, after.block);
    ASSERT_INT(before.used, after.used);
}

/* Parameters arrive at 3 s: F0 3-4, B0 4-6, F1 6-7, B1 7-9. Reducing gradients takes 5
 * s, of which 2 hide behind the last backward: the step ends at 12; with a tail of 4 s
 * after the backward at 13. */
static void a_stage_waits_for_its_parameters_and_its_reduction(void **state)
{
    (void)state;
    ms_stage_times times[1] = {stage(1.0, 1.0, 2.0, 2.0, 0.0, 0.0)};
    times[0].release_s = 3.0;
    times[0].reduce_s = 5.0;
    ms_schedule_shape shape = {.kind = MS_1F1B,
                               .num_ranks = 1,
                               .num_microbatches = 2,
                               .virtual_stages = 1,
                               .group = 0};
    ASSERT_NEAR(makespan(shape, times), 12.0, 0.0);
    times[0].reduce_tail_s = 4.0;
    ASSERT_NEAR(makespan(shape, times), 13.0, 0.0);
}

/* Two ranks of two chunks with one micro-batch: forwards take 0-4, the backwards of
 * stages 3, 2, 1, 0 end at 6, 8, 10, 12. Rank 0 reduces stage 2 from 8 on, so that
 * only a tail of 0.5 is left after stage 0: 12.5. Without overlap both reductions of a
 * rank come after its last backward: at 12 on rank 0, at 10 on rank 1. */
static void without_overlap_reductions_follow_the_ranks_last_backward(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_schedule_shape shape = {.kind = MS_LOOPED_BFS,
                               .num_ranks = 2,
                               .num_microbatches = 1,
                               .virtual_stages = 2};
    ms_stage_times times[4];
    for (int s = 0; s < 4; s++) {
        times[s] = plain(1.0, 2.0);
        times[s].reduce_s = 2.0;
        times[s].reduce_tail_s = 0.5;
    }
    ASSERT_NEAR(makespan(shape, times), 12.5, 0.0);
    for (int s = 0; s < 4; s++) {
        times[s].reduce_tail_s = 2.0;
        times[s].reduces_last = true;
    }
    double end_s[2];
    ms_replay_result result = {.end_s = end_s};
    ms_replay(ms_schedule_make(cx->arena, &shape), times, cx->arena, &result);
    ASSERT_NEAR(end_s[0], 16.0, 0.0);
    ASSERT_NEAR(end_s[1], 14.0, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_runs_its_work_without_a_gap),
        cmocka_unit_test(a_stage_waits_for_its_parameters_and_its_reduction),
        cmocka_unit_test(latency_delays_the_receiver_and_not_the_sender),
        cmocka_unit_test(wrap_edges_of_interleaved_schedules_pay_latency),
        cmocka_unit_test(first_forward_and_last_backward_of_a_stage_may_differ),
        cmocka_unit_test(without_overlap_reductions_follow_the_ranks_last_backward),
        cmocka_unit_test(published_schedules_take_their_known_time),
        cmocka_unit_test(a_slow_early_stage_beats_the_usual_closed_form),
        cmocka_unit_test(every_action_has_its_end),
        cmocka_unit_test(the_scratch_arena_is_left_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
