/* Zero-bubble and V-shaped schedules action for action, on 4 ranks with 8
 * micro-batches, where forward F, input gradient I and weight gradient W take 1 each:
 * ZB-auto, V-Half and V-Min as sail-sg/zero-bubble-pipeline-parallelism (commit
 * 39f2c186, scheduler/zb.py and zbv_greedy.py) builds them, ZB-V as PyTorch's
 * schedules.py (commit 00722e648b74) and DualPipe and DualPipeV as
 * deepseek-ai/DualPipe (commit 3da1bbea) orders them; and properties of any size. */
#include "tests/support/schedules.h"
#include "tests/test.h"

static const char *const zb_auto_lists[] = {
    "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0I0 0F7 0W0 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4 0I5 0W5 "
    "0I6 0W6 0I7 0W7",
    "1F0 1F1 1F2 1F3 1F4 1I0 1F5 1I1 1F6 1I2 1F7 1I3 1W0 1I4 1W1 1I5 1W2 1I6 1W3 1I7 "
    "1W4 1W5 1W6 1W7",
    "2F0 2F1 2F2 2I0 2F3 2I1 2F4 2I2 2F5 2I3 2F6 2I4 2F7 2I5 2W0 2I6 2W1 2I7 2W2 2W3 "
    "2W4 2W5 2W6 2W7",
    "3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3F4 3I4 3F5 3I5 3F6 3I6 3F7 3I7 3W0 3W1 3W2 3W3 "
    "3W4 3W5 3W6 3W7",
};

static const char *const zb_v_lists[] = {
    "0F0 0F1 0F2 0F3 0F4 0F5 0F6 7F0 7I0 7W0 7F1 7I1 7W1 7F2 7I2 7W2 7F3 7I3 7W3 0F7 "
    "0I0 0W0 7F4 7I4 7W4 0I1 0W1 7F5 7I5 7W5 0I2 0W2 7F6 7I6 7W6 0I3 0W3 7F7 7I7 7W7 "
    "0I4 0W4 0I5 0W5 0I6 0W6 0I7 0W7",
    "1F0 1F1 1F2 1F3 1F4 6F0 1F5 6F1 6I0 6W0 6F2 6I1 6W1 6F3 6I2 6W2 1F6 1I0 1W0 6F4 "
    "6I3 6W3 1F7 1I1 1W1 6F5 6I4 6W4 1I2 1W2 6F6 6I5 6W5 1I3 1W3 6F7 6I6 6W6 1I4 6I7 "
    "1I5 1W4 1I6 1W5 1I7 1W6 6W7 1W7",
    "2F0 2F1 2F2 5F0 2F3 5F1 2F4 5F2 5I0 5W0 5F3 5I1 5W1 2F5 2I0 2W0 5F4 5I2 5W2 2F6 "
    "2I1 2W1 5F5 5I3 5W3 2F7 2I2 2W2 5F6 5I4 5W4 2I3 2W3 5F7 5I5 5W5 2I4 5I6 2I5 5I7 "
    "2I6 2W4 2I7 2W5 5W6 5W7 2W6 2W7",
    "3F0 4F0 3F1 4F1 3F2 4F2 3F3 4F3 4I0 4W0 3F4 3I0 3W0 4F4 4I1 4W1 3F5 3I1 3W1 4F5 "
    "4I2 4W2 3F6 3I2 3W2 4F6 4I3 4W3 3F7 3I3 3W3 4F7 4I4 4W4 3I4 4I5 3I5 4I6 3I6 4I7 "
    "3I7 3W4 4W5 4W6 4W7 3W5 3W6 3W7",
};

static const char *const v_half_lists[] = {
    "0F0 0F1 0F2 0F3 0F4 7F0 7I0 7W0 7F1 7I1 7W1 7F2 0I0 7I2 7W2 7F3 0W0 0F5 0I1 7I3 "
    "7W3 7F4 0W1 0F6 0I2 7I4 7W4 7F5 0W2 0F7 0I3 7I5 7W5 7F6 7I6 7W6 0I4 0W3 0W4 7F7 "
    "7I7 0I5 7W7 0I6 0W5 0W6 0I7 0W7",
    "1F0 1F1 1F2 1F3 6F0 6F1 6I0 6W0 6F2 6I1 6W1 1I0 1W0 1F4 6F3 6I2 6W2 1I1 1W1 1F5 "
    "6F4 6I3 6W3 1I2 1W2 1F6 6F5 6I4 6W4 1I3 1F7 1W3 6F6 6I5 6W5 1I4 6I6 6W6 6F7 1W4 "
    "1I5 6I7 1I6 6W7 1W5 1W6 1I7 1W7",
    "2F0 2F1 2F2 5F0 5F1 5F2 5I0 5W0 2F3 5I1 2I0 5W1 2W0 5F3 2F4 2I1 5I2 5W2 5F4 2W1 "
    "2F5 2I2 5I3 5W3 5F5 2W2 2F6 2I3 5I4 5W4 5F6 2W3 2F7 2I4 5I5 5W5 5F7 5I6 2I5 5W6 "
    "2I6 5I7 5W7 2W4 2I7 2W5 2W6 2W7",
    "3F0 4F0 3F1 4F1 3F2 4F2 4I0 4W0 3I0 3W0 3F3 4F3 4I1 4W1 3I1 3W1 3F4 4F4 4I2 4W2 "
    "3I2 3W2 3F5 4F5 4I3 4W3 3I3 3F6 3W3 4F6 4I4 3I4 4W4 3F7 3W4 4F7 4I5 3I5 4I6 3I6 "
    "4W5 4W6 4I7 3I7 4W7 3W5 3W6 3W7",
};

static const char *const v_min_lists[] = {
    "0F0 0F1 0F2 7F0 7I0 7W0 7F1 7I1 7W1 0I0 0W0 0F3 7F2 7I2 0I1 7W2 0W1 0F4 7F3 7I3 "
    "0I2 7W3 0W2 0F5 7F4 7I4 0I3 7W4 0W3 0F6 7F5 7I5 0I4 7W5 0W4 0F7 7F6 7I6 0I5 7W6 "
    "0W5 7F7 7I7 0I6 7W7 0W6 0I7 0W7",
    "1F0 1F1 6F0 6F1 6I0 6W0 1F2 1I0 6I1 6W1 1W0 6F2 1F3 1I1 6I2 6W2 1W1 6F3 1F4 1I2 "
    "6I3 6W3 1W2 6F4 1F5 1I3 6I4 6W4 1W3 6F5 1F6 1I4 6I5 6W5 1W4 6F6 1F7 1I5 6I6 6W6 "
    "1W5 6F7 1I6 6I7 6W7 1W6 1I7 1W7",
    "2F0 2F1 5F0 5F1 5I0 5W0 2F2 2I0 2W0 5I1 5F2 5W1 2I1 2F3 2W1 5I2 5F3 5W2 2I2 2F4 "
    "2W2 5I3 5F4 5W3 2I3 2F5 2W3 5I4 5F5 5W4 2I4 2F6 2W4 5I5 5F6 5W5 2I5 2F7 2W5 5I6 "
    "5F7 5W6 2I6 2W6 5I7 5W7 2I7 2W7",
    "3F0 4F0 3F1 4F1 4I0 3I0 4W0 3W0 3F2 4F2 4I1 3I1 4W1 3W1 3F3 4F3 4I2 3I2 4W2 3W2 "
    "3F4 4F4 4I3 3I3 4W3 3W3 3F5 4F5 4I4 3I4 4W4 3W4 3F6 4F6 4I5 3I5 4W5 3W5 3F7 4F7 "
    "4I6 3I6 4W6 3W6 4I7 3I7 4W7 3W7",
};

static const char *const dualpipe_lists[] = {
    "0F0 0F1 0F2 7F0 7I0 7W0 7F1 <0F3+7B1> <7F2+0B0> 7B2 <7F3+0B1> 7B3 0I2 0W2 0I3 0W3",
    "1F0 6F0 1F1 6F1 1F2 6B0 <6F2+1B0> <1F3+6B1> <6F3+1B1> 6B2 1B2 6I3 1I3 6W3 1W3",
    "5F0 2F0 5F1 2F1 5F2 2B0 <2F2+5B0> <5F3+2B1> <2F3+5B1> 2B2 5B2 2I3 5I3 2W3 5W3",
    "4F0 4F1 4F2 3F0 3I0 3W0 3F1 <4F3+3B1> <3F2+4B0> 3B2 <3F3+4B1> 3B3 4I2 4W2 4I3 4W3",
};

static const char *const dualpipev_lists[] = {
    "0F0 0F1 0F2 0F3 0F4 0F5 0F6 7F0 7I0 7W0 7F1 7I1 7W1 7F2 7I2 7W2 7F3 <0F7+7B3> "
    "<7F4+0B0> 7B4 <7F5+0B1> 7B5 <7F6+0B2> 7B6 <7F7+0B3> 7B7 0I4 0W4 0I5 0W5 0I6 0W6 "
    "0I7 0W7",
    "1F0 1F1 1F2 1F3 1F4 6F0 1F5 6F1 6I0 6W0 6F2 6I1 6W1 6F3 <1F6+6B2> <6F4+1B0> "
    "<1F7+6B3> <6F5+1B1> 6B4 <6F6+1B2> 6B5 <6F7+1B3> 6B6 1B4 6I7 1I5 6W7 1I6 1W5 1I7 "
    "1W6 1W7",
    "2F0 2F1 2F2 5F0 2F3 5F1 2F4 5F2 5I0 5W0 5F3 <2F5+5B1> <5F4+2B0> <2F6+5B2> "
    "<5F5+2B1> <2F7+5B3> <5F6+2B2> 5B4 <5F7+2B3> 5B5 2B4 5B6 2I5 5I7 2I6 2W5 2I7 5W7 "
    "2W6 2W7",
    "3F0 4F0 3F1 4F1 3F2 4F2 3F3 4F3 3F4 4B0 <4F4+3B0> <3F5+4B1> <4F5+3B1> <3F6+4B2> "
    "<4F6+3B2> <3F7+4B3> <4F7+3B3> 4B4 3B4 4B5 3B5 4I6 3I6 4I7 3I7 4W6 3W6 4W7 3W7",
};

/* A schedule by its lists of actions. A chunk is in flight from its forward to its
 * weight gradient W (or whole backward). */
typedef struct example {
    ms_schedule_kind kind;
    const char *const *lists;
    double makespan, busy, span_bubble;
    int in_flight; /* most chunks in flight at once; equal on all ranks */
    /* most chunks at once, by rank, whose forward has run, but not yet their input
     * gradient I */
    int before_backward[4];
} example;

static const example examples[] = {
    {MS_ZB_AUTO, zb_auto_lists, 27, 24, 0, 8, {7, 5, 3, 1}},
    {MS_ZB_V, zb_v_lists, 51, 48, 0, 8, {8, 8, 8, 8}},
    {MS_V_HALF, v_half_lists, 53, 48, 5, 6, {6, 6, 6, 6}},
    {MS_V_MIN, v_min_lists, 59, 48, 11, 4, {4, 4, 4, 4}},
    {MS_DUALPIPE, dualpipe_lists, 26, 24, 2, 5, {5, 5, 5, 5}},
    {MS_DUALPIPEV, dualpipev_lists, 54, 48, 6, 9, {9, 9, 9, 9}},
};
#define NUM_EXAMPLES (sizeof examples / sizeof examples[0])

static const ms_schedule_times unit_times = {1, 1, 1, 0};

static void lists_equal_the_published_ones(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < NUM_EXAMPLES; i++) {
        const ms_schedule *schedule =
            made_schedule(cx->arena, plain_shape(examples[i].kind, 4, 8));
        ASSERT_OK(ms_schedule_check(cx, schedule, MS_NOWHERE), cx);
        for (int r = 0; r < 4; r++)
            ASSERT_TEXT(rank_actions_text(cx->arena, schedule, r), examples[i].lists[r]);
    }
}

static void makespans_bubbles_and_counts_in_flight_are_the_published_ones(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    for (size_t i = 0; i < NUM_EXAMPLES; i++) {
        const example *want = &examples[i];
        const ms_schedule *schedule = made_schedule(arena, plain_shape(want->kind, 4, 8));
        ms_schedule_timeline run = ms_schedule_run(arena, schedule, &unit_times);
        ASSERT_NEAR(run.makespan, want->makespan, 0);
        ASSERT_NEAR(largest_span_bubble(schedule, unit_times), want->span_bubble, 0);
        for (int r = 0; r < 4; r++) {
            ASSERT_NEAR(run.busy[r], want->busy, 0);
            ASSERT_INT(ms_schedule_in_flight(schedule, r), want->in_flight);
            ASSERT_INT(most_before_backward(schedule, r), want->before_backward[r]);
        }
    }
}

/* ZB-auto, limited to the memory of 1F1B, finds ZB-H1 by itself when all passes take
 * equal times (ZB-1p of the paper). */
static void zb_auto_with_the_memory_of_1f1b_is_zb_h1(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    ms_schedule_shape shape = plain_shape(MS_ZB_AUTO, 4, 8);
    shape.memory_limit = 1;
    const ms_schedule *built = made_schedule(arena, shape);
    const ms_schedule *h1 = made_schedule(arena, plain_shape(MS_ZB_H1, 4, 8));
    for (int r = 0; r < 4; r++)
        ASSERT_TEXT(rank_actions_text(arena, built, r), rank_actions_text(arena, h1, r));
}

/* ---- any size ---- */

/* Most chunks in flight on any rank of the schedule. */
static int peak_of(const ms_schedule *schedule)
{
    int peak = 0;
    for (int r = 0; r < schedule->shape.num_ranks; r++) {
        int in_flight = ms_schedule_in_flight(schedule, r);
        peak = in_flight > peak ? in_flight : peak;
    }
    return peak;
}

static void expect_sound(ms_schedule_shape shape, int most_in_flight)
{
    ms_ctx *cx = test_cx();
    const ms_schedule *schedule = made_schedule(cx->arena, shape);
    ASSERT_OK(ms_schedule_check(cx, schedule, MS_NOWHERE), cx);
    int peak = peak_of(schedule);
    if (peak > most_in_flight)
        fail_msg("%s p=%d m=%d: %d chunks in flight, at most %d",
                 ms_schedule_names[shape.kind], shape.num_ranks, shape.num_microbatches,
                 peak, most_in_flight);
}

static const int some_microbatches[] = {1, 2, 3, 4, 5, 7, 8, 12, 13, 20, 33};
#define NUM_SOME (sizeof some_microbatches / sizeof some_microbatches[0])

/* The most chunks alive at once on a rank of V-Half over p ranks, found by counting for p
 * = 1 .. 16: about p. `least_peak` gives the number for V-Min: about 2p/3. ZB-V has
 * 2p. */
static int half_peak(int p)
{
    return 2 * (p / 2) + 2;
}

static int least_peak(int p)
{
    return 2 * ((p + 1) / 3) + 2;
}

static void vs_of_any_size_run_within_their_memory(void **state)
{
    (void)state;
    for (int p = 1; p <= 9; p++)
        for (size_t i = 0; i < NUM_SOME; i++) {
            int m = some_microbatches[i];
            expect_sound(plain_shape(MS_ZB_V, p, m), 2 * p);
            expect_sound(plain_shape(MS_V_HALF, p, m), half_peak(p));
            expect_sound(plain_shape(MS_V_MIN, p, m), least_peak(p));
        }
}

/* Peak memory relative to that of ZB-V (2p chunks on p ranks): on 4 ranks 6/8 in V-Half
 * and 4/8 in V-Min, on 8 ranks 10/16 and 8/16. */
static void patterns_keep_the_published_shares_of_memory(void **state)
{
    (void)state;
    assert_true(half_peak(4) == 6 && least_peak(4) == 4);
    assert_true(half_peak(8) == 10 && least_peak(8) == 8);
    for (int p = 1; p <= 16; p++) {
        ms_arena *arena = test_cx()->arena;
        ASSERT_INT(peak_of(made_schedule(arena, plain_shape(MS_V_HALF, p, 64))),
                   half_peak(p));
        ASSERT_INT(peak_of(made_schedule(arena, plain_shape(MS_V_MIN, p, 64))),
                   least_peak(p));
    }
}

static void pairs_run_wherever_there_are_enough_microbatches(void **state)
{
    (void)state;
    for (int p = 1; p <= 9; p++)
        for (int m = 2 * p; m <= 5 * p; m++) {
            expect_sound(plain_shape(MS_DUALPIPEV, p, m), 2 * p + 1);
            if (p % 2 == 0 && m % 2 == 0)
                expect_sound(plain_shape(MS_DUALPIPE, p, m), p + 1);
        }
}

static void zb_auto_keeps_any_limit_with_any_times(void **state)
{
    (void)state;
    static const double limits[] = {0.5, 1, 1.3, 2, 4};
    static const ms_schedule_times times[] = {
        {0, 0, 0, 0}, {1, 1, 1, 0.2}, {2, 3, 1, 0.5}, {1, 0.5, 2, 0}, {1, 2, 0, 3}};
    for (int p = 2; p <= 8; p += 2)
        for (size_t i = 0; i < NUM_SOME; i++)
            for (size_t l = 0; l < sizeof limits / sizeof limits[0]; l++)
                for (size_t t = 0; t < sizeof times / sizeof times[0]; t++) {
                    ms_schedule_shape shape =
                        plain_shape(MS_ZB_AUTO, p, some_microbatches[i]);
                    shape.memory_limit = limits[l];
                    shape.times = times[t];
                    expect_sound(shape, (int)(limits[l] * p));
                }
}

/* Peak activations of a rank, in units of one micro-batch's activations. An input
 * gradient I frees the share 1 - weight_share of its micro-batch, the weight gradient W
 * frees the rest. */
static double most_kept(const ms_schedule *schedule, int rank)
{
    double kept = 0, most = 0, share = schedule->shape.weight_share;
    for (int i = schedule->first_action[rank]; i < schedule->first_action[rank + 1];
         i++) {
        int kind = schedule->actions[i].kind;
        kept += kind == MS_FORWARD ? 1 : kind == MS_BACKWARD_INPUT ? share - 1 : -share;
        most = fmax(most, kept);
    }
    return most;
}

static void zb_auto_counts_the_part_that_weight_gradients_need(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    for (int p = 2; p <= 8; p++)
        for (double limit = 1; limit <= 2; limit += 0.25) {
            ms_schedule_shape shape = plain_shape(MS_ZB_AUTO, p, 4 * p);
            shape.memory_limit = limit;
            shape.weight_share = 0.4;
            shape.times = (ms_schedule_times){2, 2, 1, 0.1};
            const ms_schedule *schedule = made_schedule(arena, shape);
            for (int r = 0; r < p; r++)
                assert_true(most_kept(schedule, r) <= limit * p + 1e-6);
            /* no memory is freed early: the bubble cannot be smaller */
            shape.weight_share = 1;
            assert_true(largest_span_bubble(made_schedule(arena, shape), shape.times) >=
                        largest_span_bubble(schedule, shape.times) - 1e-9);
        }
}

static void twice_the_memory_of_1f1b_leaves_no_bubble(void **state)
{
    (void)state;
    for (int p = 2; p <= 16; p *= 2)
        for (int m = 2 * p; m <= 6 * p; m += p) {
            const ms_schedule *schedule =
                made_schedule(test_cx()->arena, plain_shape(MS_ZB_AUTO, p, m));
            ASSERT_NEAR(largest_span_bubble(schedule, unit_times), 0, 0);
        }
}

/* ---- refused shapes ---- */

static void expect_objection(ms_schedule_shape shape, const char *want)
{
    const char *why = NULL;
    assert_false(ms_schedule_allows(&shape, &why));
    if (strstr(why, want) == NULL)
        fail_msg("got \"%s\", want \"%s\" in it", why, want);
}

static void objections_say_what_would_be_right(void **state)
{
    (void)state;
    expect_objection(plain_shape(MS_DUALPIPE, 3, 8), "even number of pipeline ranks");
    expect_objection(plain_shape(MS_DUALPIPE, 4, 9), "even number of micro-batches");
    expect_objection(plain_shape(MS_DUALPIPE, 4, 6), "twice as many micro-batches");
    expect_objection(plain_shape(MS_DUALPIPEV, 4, 7), "twice as many micro-batches");
    ms_schedule_shape shape = plain_shape(MS_ZB_AUTO, 4, 8);
    shape.memory_limit = 0.2;
    expect_objection(shape, "less than one micro-batch");
    shape.memory_limit = NAN;
    expect_objection(shape, "less than one micro-batch");
    shape = plain_shape(MS_ZB_AUTO, 4, 8);
    shape.times.send = -1;
    expect_objection(shape, "0 or more");
    shape = plain_shape(MS_ZB_V, 4, 8);
    shape.virtual_stages = 3;
    expect_objection(shape, "2 virtual stages");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_equal_the_published_ones),
        cmocka_unit_test(makespans_bubbles_and_counts_in_flight_are_the_published_ones),
        cmocka_unit_test(zb_auto_with_the_memory_of_1f1b_is_zb_h1),
        cmocka_unit_test(vs_of_any_size_run_within_their_memory),
        cmocka_unit_test(patterns_keep_the_published_shares_of_memory),
        cmocka_unit_test(pairs_run_wherever_there_are_enough_microbatches),
        cmocka_unit_test(zb_auto_keeps_any_limit_with_any_times),
        cmocka_unit_test(zb_auto_counts_the_part_that_weight_gradients_need),
        cmocka_unit_test(twice_the_memory_of_1f1b_leaves_no_bubble),
        cmocka_unit_test(objections_say_what_would_be_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
