/* Schedules with several chunks a rank and zero-bubble schedules, action for action:
 * looped BFS and interleaved zero-bubble as PyTorch's schedules.py (commit
 * 00722e648b74) lists them, ZB-H1 and ZB-H2 as the Zero Bubble paper (arXiv
 * 2401.10241) draws them, the combined forward-backward as Megatron-LM (commit
 * d98e8a64ddf3) orders it. Times and counts in flight are by hand from the lists;
 * forward F, input gradient I and weight gradient W take 1 each. */
#include "costmodel/schedule/schedule.h"

#include "tests/support/schedules.h"
#include "tests/test.h"

static const char *const looped_bfs_lists[] = {
    "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 4F0 4F1 4F2 4F3 4F4 4F5 4F6 4F7 4B7 4B6 4B5 4B4 "
    "4B3 4B2 4B1 4B0 0B7 0B6 0B5 0B4 0B3 0B2 0B1 0B0",
    "1F0 1F1 1F2 1F3 1F4 1F5 1F6 1F7 5F0 5F1 5F2 5F3 5F4 5F5 5F6 5F7 5B7 5B6 5B5 5B4 "
    "5B3 5B2 5B1 5B0 1B7 1B6 1B5 1B4 1B3 1B2 1B1 1B0",
    "2F0 2F1 2F2 2F3 2F4 2F5 2F6 2F7 6F0 6F1 6F2 6F3 6F4 6F5 6F6 6F7 6B7 6B6 6B5 6B4 "
    "6B3 6B2 6B1 6B0 2B7 2B6 2B5 2B4 2B3 2B2 2B1 2B0",
    "3F0 3F1 3F2 3F3 3F4 3F5 3F6 3F7 7F0 7F1 7F2 7F3 7F4 7F5 7F6 7F7 7B7 7B6 7B5 7B4 "
    "7B3 7B2 7B1 7B0 3B7 3B6 3B5 3B4 3B3 3B2 3B1 3B0",
};

static const char *const zb_h1_lists[] = {
    "0F0 0F1 0F2 0F3 0I0 0W0 0F4 0I1 0W1 0F5 0I2 0W2 0F6 0I3 0W3 0F7 0I4 0W4 0I5 0W5 "
    "0I6 0W6 0I7 0W7",
    "1F0 1F1 1F2 1I0 1F3 1I1 1W0 1F4 1I2 1W1 1F5 1I3 1W2 1F6 1I4 1W3 1F7 1I5 1W4 1I6 "
    "1W5 1I7 1W6 1W7",
    "2F0 2F1 2I0 2F2 2I1 2F3 2I2 2W0 2F4 2I3 2W1 2F5 2I4 2W2 2F6 2I5 2W3 2F7 2I6 2W4 "
    "2I7 2W5 2W6 2W7",
    "3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3W0 3F4 3I4 3W1 3F5 3I5 3W2 3F6 3I6 3W3 3F7 3I7 "
    "3W4 3W5 3W6 3W7",
};

static const char *const zb_h2_lists[] = {
    "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0I0 0W0 0F7 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4 0I5 0W5 "
    "0I6 0W6 0I7 0W7",
    "1F0 1F1 1F2 1F3 1F4 1I0 1F5 1I1 1F6 1I2 1W0 1F7 1I3 1W1 1I4 1W2 1I5 1W3 1I6 1W4 "
    "1I7 1W5 1W6 1W7",
    "2F0 2F1 2F2 2I0 2F3 2I1 2F4 2I2 2F5 2I3 2F6 2I4 2W0 2F7 2I5 2W1 2I6 2W2 2I7 2W3 "
    "2W4 2W5 2W6 2W7",
    "3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3F4 3I4 3F5 3I5 3F6 3I6 3W0 3F7 3I7 3W1 3W2 3W3 "
    "3W4 3W5 3W6 3W7",
};

static const char *const combined_lists[] = {
    "0F0 0F1 0F2 0F3 4F0 4F1 4F2 4F3 0F4 0F5 0F6 <0F7+4B0> <4F4+4B1> <4F5+4B2> "
    "<4F6+4B3> <4F7+0B0> 0B1 0B2 0B3 4B4 4B5 4B6 4B7 0B4 0B5 0B6 0B7",
    "1F0 1F1 1F2 1F3 5F0 5F1 5F2 5F3 1F4 <1F5+5B0> <1F6+5B1> <1F7+5B2> <5F4+5B3> "
    "<5F5+1B0> <5F6+1B1> <5F7+1B2> 1B3 5B4 5B5 5B6 5B7 1B4 1B5 1B6 1B7",
    "2F0 2F1 2F2 2F3 6F0 6F1 6F2 <6F3+6B0> <2F4+6B1> <2F5+6B2> <2F6+6B3> <2F7+2B0> "
    "<6F4+2B1> <6F5+2B2> <6F6+2B3> <6F7+6B4> 6B5 6B6 6B7 2B4 2B5 2B6 2B7",
    "3F0 3F1 3F2 3F3 7F0 <7F1+7B0> <7F2+7B1> <7F3+7B2> <3F4+7B3> <3F5+3B0> <3F6+3B1> "
    "<3F7+3B2> <7F4+3B3> <7F5+7B4> <7F6+7B5> <7F7+7B6> 7B7 3B4 3B5 3B6 3B7",
};

/* A schedule on 4 ranks with 8 micro-batches: its lists of actions by rank and the
 * expected times. `in_flight`: by rank, the most chunks in flight at once, where a chunk
 * is in flight from its forward to the end of its weight gradient W (or of its whole
 * backward). */
typedef struct example {
    ms_schedule_shape shape;
    const char *const *lists;
    double makespan, busy, span_bubble;
    int in_flight[4];
} example;

static const example examples[] = {
    {{.kind = MS_LOOPED_BFS, .num_ranks = 4, .num_microbatches = 8, .virtual_stages = 2},
     looped_bfs_lists,
     57,
     48,
     9,
     {16, 16, 16, 16}},
    {{.kind = MS_ZB_H1, .num_ranks = 4, .num_microbatches = 8, .virtual_stages = 1},
     zb_h1_lists,
     27,
     24,
     3,
     {4, 4, 4, 4}},
    {{.kind = MS_INTERLEAVED_ZB,
      .num_ranks = 4,
      .num_microbatches = 8,
      .virtual_stages = 1},
     zb_h1_lists,
     27,
     24,
     3,
     {4, 4, 4, 4}},
    {{.kind = MS_ZB_H2, .num_ranks = 4, .num_microbatches = 8, .virtual_stages = 1},
     zb_h2_lists,
     27,
     24,
     0,
     {7, 7, 7, 7}},
    {{.kind = MS_COMBINED_1F1B,
      .num_ranks = 4,
      .num_microbatches = 8,
      .virtual_stages = 2},
     combined_lists,
     57,
     48,
     9,
     {12, 10, 8, 6}},
};
#define NUM_EXAMPLES (sizeof examples / sizeof examples[0])

static void lists_equal_the_published_ones(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < NUM_EXAMPLES; i++) {
        const ms_schedule *schedule = made_schedule(cx->arena, examples[i].shape);
        ASSERT_OK(ms_schedule_check(cx, schedule, MS_NOWHERE), cx);
        for (int r = 0; r < 4; r++)
            ASSERT_TEXT(rank_actions_text(cx->arena, schedule, r), examples[i].lists[r]);
    }
}

/* ---- times ---- */

static const ms_schedule_times ones = {1, 1, 1, 0};

static ms_schedule_timeline run(const ms_schedule *schedule)
{
    return ms_schedule_run(test_cx()->arena, schedule, &ones);
}

static void makespans_bubbles_and_counts_in_flight_are_the_published_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_EXAMPLES; i++) {
        const ms_schedule *schedule = made_schedule(test_cx()->arena, examples[i].shape);
        ms_schedule_timeline got = run(schedule);
        ASSERT_NEAR(got.makespan, examples[i].makespan, 0);
        ASSERT_NEAR(got.global_bubble, examples[i].makespan - examples[i].busy, 0);
        ASSERT_NEAR(largest_span_bubble(schedule, ones), examples[i].span_bubble, 0);
        for (int r = 0; r < 4; r++)
            ASSERT_NEAR(got.busy[r], examples[i].busy, 0);
        for (int r = 0; r < 4; r++)
            ASSERT_INT(ms_schedule_in_flight(schedule, r), examples[i].in_flight[r]);
    }
}

/* ---- any number of micro-batches ---- */

static const ms_schedule_kind kinds[] = {MS_LOOPED_BFS, MS_ZB_H1, MS_ZB_H2,
                                         MS_INTERLEAVED_ZB, MS_COMBINED_1F1B};

static void check_shape(ms_schedule_shape shape)
{
    ms_ctx *cx = test_cx();
    const ms_schedule *schedule = made_schedule(cx->arena, shape);
    ASSERT_OK(ms_schedule_check(cx, schedule, MS_NOWHERE), cx);
}

static void every_number_of_microbatches_runs_also_fewer_than_ranks(void **state)
{
    (void)state;
    int num = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        ms_schedule_traits traits = ms_schedule_traits_of(kinds[k]);
        for (int p = 2; p <= 6; p++) {
            for (int m = 1; m <= 2 * p + 1; m++) {
                int v = traits.most_virtual == 1 ? 1 : 2;
                check_shape(
                    (ms_schedule_shape){.kind = kinds[k],
                                        .num_ranks = p,
                                        .num_microbatches = m,
                                        .virtual_stages = v,
                                        .group = v == 2 && traits.groups ? m : 0});
                num++;
            }
        }
    }
    ASSERT_INT(num, 5 * (5 + 7 + 9 + 11 + 13));
}

/* Looped BFS accepts 13 = 3 x 4 + 1 micro-batches on 4 ranks, where interleaved 1F1B
 * in groups of 4 would deadlock. */
static void looped_bfs_has_no_groups(void **state)
{
    (void)state;
    ms_schedule_shape shape = {.kind = MS_LOOPED_BFS,
                               .num_ranks = 4,
                               .num_microbatches = 13,
                               .virtual_stages = 3};
    check_shape(shape);
    shape.kind = MS_INTERLEAVED;
    assert_true(ms_schedule_group_deadlocks(&shape));
    shape.kind = MS_LOOPED_BFS;
    shape.group = 4;
    assert_false(ms_schedule_allows(&shape, NULL));
    assert_false(ms_schedule_group_deadlocks(&shape));
}

/* One rank has nothing to wait for: the combined order still pairs a forward with the
 * backward of the micro-batch before. */
static void one_rank_overlaps_neighbouring_microbatches(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_schedule_shape shape = {.kind = MS_COMBINED_1F1B,
                               .num_ranks = 1,
                               .num_microbatches = 3,
                               .virtual_stages = 1};
    ASSERT_TEXT(rank_actions_text(cx->arena, made_schedule(cx->arena, shape), 0),
                "0F0 <0F1+0B0> <0F2+0B1> 0B2");
}

/* ---- groups ---- */

/* Checks every group size of every small shape: allowed shapes run, refused ones would
 * deadlock. Returns how many are allowed. */
static int count_groups(ms_schedule_kind kind, int p, int v, int *num_refused)
{
    int num = 0;
    for (int m = 1; m <= 12; m++) {
        for (int group = 1; group <= m; group++) {
            ms_schedule_shape shape = {.kind = kind,
                                       .num_ranks = p,
                                       .num_microbatches = m,
                                       .virtual_stages = v,
                                       .group = group};
            ms_ctx *cx = test_cx();
            const ms_schedule *schedule;
            bool runs =
                ms_schedule_open(cx, cx->arena, &shape, MS_NOWHERE, &schedule) == MS_OK;
            if (runs != ms_schedule_allows(&shape, NULL))
                fail_msg("%s p=%d m=%d v=%d g=%d runs: %d", ms_schedule_names[kind], p, m,
                         v, group, runs);
            *num_refused += !runs;
            num++;
        }
    }
    return num;
}

static void groups_are_refused_exactly_when_they_deadlock(void **state)
{
    (void)state;
    const ms_schedule_kind grouped[] = {MS_INTERLEAVED, MS_INTERLEAVED_ZB,
                                        MS_COMBINED_1F1B};
    for (size_t k = 0; k < 3; k++) {
        int num = 0, num_refused = 0;
        for (int p = 2; p <= 6; p++)
            for (int v = 2; v <= 4; v++)
                num += count_groups(grouped[k], p, v, &num_refused);
        ASSERT_INT(num, 15 * 78);
        assert_true(num_refused > 100 && num_refused < num / 2);
    }
}

/* ---- formulas, inside their ranges ---- */

/* The combined order on rank r of p, with v chunks a rank and groups of g micro-batches:
 * before its first pair the rank runs 2(p - 1 - r) + (v - 1) g + 1 forwards, and the pair
 * adds one more to those in flight. */
static void combined_holds_one_more_than_interleaved(void **state)
{
    (void)state;
    for (int p = 2; p <= 6; p++) {
        for (int v = 2; v <= 3; v++) {
            ms_schedule_shape shape = {.kind = MS_COMBINED_1F1B,
                                       .num_ranks = p,
                                       .num_microbatches = 4 * p,
                                       .virtual_stages = v,
                                       .group = p};
            const ms_schedule *schedule = made_schedule(test_cx()->arena, shape);
            for (int r = 0; r < p; r++)
                ASSERT_INT(ms_schedule_in_flight(schedule, r),
                           2 * (p - 1 - r) + (v - 1) * p + 2);
        }
    }
}

/* ZB-H1 and ZB-H2 have the bubbles (p-1)(F+I-W) and (p-1)(F+I-2W) and the peaks p and
 * 2p-1 micro-batches of the Zero Bubble paper, table 2; here F = I = W = 1. */
static void zero_bubble_orders_keep_the_bubbles_and_peaks_of_the_paper(void **state)
{
    (void)state;
    for (int p = 2; p <= 10; p++) {
        ms_schedule_shape shape = {.kind = MS_ZB_H1,
                                   .num_ranks = p,
                                   .num_microbatches = 3 * p,
                                   .virtual_stages = 1};
        const ms_schedule *h1 = made_schedule(test_cx()->arena, shape);
        shape.kind = MS_ZB_H2;
        const ms_schedule *h2 = made_schedule(test_cx()->arena, shape);
        ASSERT_NEAR(largest_span_bubble(h1, ones), p - 1, 0);
        ASSERT_NEAR(largest_span_bubble(h2, ones), 0, 0);
        /* The makespans are equal, since a step that waits for its own last action
         * includes both the ramp at its start and the ramp at its end. */
        ASSERT_NEAR(run(h2).makespan, run(h1).makespan, 0);
        for (int r = 0; r < p; r++) {
            ASSERT_INT(ms_schedule_in_flight(h1, r), p);
            ASSERT_INT(ms_schedule_in_flight(h2, r), 2 * p - 1);
        }
    }
}

/* Interleaved zero-bubble on p ranks of v chunks: the bubble is (p - 1)(F + I - W) in
 * times of a chunk, and v p chunks are alive on every rank. */
static void interleaved_zero_bubble_fills_the_bubble_of_interleaved(void **state)
{
    (void)state;
    for (int p = 2; p <= 6; p++) {
        for (int v = 1; v <= 4; v++) {
            ms_schedule_shape shape = {.kind = MS_INTERLEAVED_ZB,
                                       .num_ranks = p,
                                       .num_microbatches = 4 * p,
                                       .virtual_stages = v};
            const ms_schedule *schedule = made_schedule(test_cx()->arena, shape);
            ASSERT_NEAR(largest_span_bubble(schedule, ones), p - 1, 0);
            for (int r = 0; r < p; r++)
                ASSERT_INT(ms_schedule_in_flight(schedule, r), v * p);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_equal_the_published_ones),
        cmocka_unit_test(makespans_bubbles_and_counts_in_flight_are_the_published_ones),
        cmocka_unit_test(every_number_of_microbatches_runs_also_fewer_than_ranks),
        cmocka_unit_test(looped_bfs_has_no_groups),
        cmocka_unit_test(one_rank_overlaps_neighbouring_microbatches),
        cmocka_unit_test(groups_are_refused_exactly_when_they_deadlock),
        cmocka_unit_test(combined_holds_one_more_than_interleaved),
        cmocka_unit_test(zero_bubble_orders_keep_the_bubbles_and_peaks_of_the_paper),
        cmocka_unit_test(interleaved_zero_bubble_fills_the_bubble_of_interleaved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
