/* Tests of simulated pipeline schedules against published bubble formulas, within the
 * ranges in which they hold, and of the time that sends add. Bubble: largest over ranks
 * of the time between a rank's first start and last end in which it does not work (Qi et
 * al. 2023, arXiv 2401.10241, section 5.3). Letters: p ranks, m micro-batches, v chunks a
 * rank; times F of a forward, B of a backward, I of its input gradient, W of its weight
 * gradient. */
#include "costmodel/schedule/schedule_priv.h"
#include "tests/support/schedules.h"
#include "tests/test.h"

typedef struct size {
    int p, m;
} size;

static const size sizes[] = {{2, 4}, {4, 8}, {8, 24}};
#define NUM_SIZES (sizeof sizes / sizeof sizes[0])

static const double lengths[] = {0.5, 1, 1.25, 2, 3};
enum {
    NUM_LENGTHS = sizeof lengths / sizeof lengths[0],
    NUM_TRIPLES = NUM_LENGTHS * NUM_LENGTHS * NUM_LENGTHS
};

static ms_schedule_times triple(int i)
{
    return (ms_schedule_times){lengths[i % NUM_LENGTHS],
                               lengths[i / NUM_LENGTHS % NUM_LENGTHS],
                               lengths[i / NUM_LENGTHS / NUM_LENGTHS], 0};
}

static void expect_bubble(const ms_schedule *schedule, ms_schedule_times t, double want)
{
    double got = largest_span_bubble(schedule, t);
    if (!(fabs(got - want) <= 1e-9 * (1 + want)))
        fail_msg("%s p=%d m=%d F=%g I=%g W=%g: bubble %.12g, formula %.12g",
                 ms_schedule_names[schedule->shape.kind], schedule->shape.num_ranks,
                 schedule->shape.num_microbatches, t.forward, t.backward_input,
                 t.backward_weight, got, want);
}

/* ---- bubbles ---- */

/* GPipe, 1F1B, interleaved and looped breadth-first have a bubble of (p-1)(F+B) at any
 * times. Sources: Huang et al. 2019 (GPipe); Narayanan et al. 2021, section 2.2 (1F1B;
 * interleaved, with F and B of a chunk); Lamy-Poirier 2023 (looped breadth-first). */
static void whole_backwards_leave_p_minus_1_of_forward_and_backward(void **state)
{
    (void)state;
    static const struct {
        ms_schedule_kind kind;
        int v;
    } cases[] = {{MS_GPIPE, 1},       {MS_1F1B, 1},       {MS_INTERLEAVED, 2},
                 {MS_INTERLEAVED, 3}, {MS_LOOPED_BFS, 2}, {MS_LOOPED_BFS, 3}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (size_t i = 0; i < NUM_SIZES; i++) {
            ms_schedule_shape shape = plain_shape(cases[c].kind, sizes[i].p, sizes[i].m);
            shape.virtual_stages = cases[c].v;
            const ms_schedule *schedule = made_schedule(test_cx()->arena, shape);
            for (int k = 0; k < NUM_TRIPLES; k++) {
                ms_schedule_times t = triple(k);
                expect_bubble(schedule, t,
                              (sizes[i].p - 1) *
                                  (t.forward + t.backward_input + t.backward_weight));
            }
        }
}

/* Bubble of ZB-H1: (p-1)(F+I-W) while W <= F (arXiv 2401.10241, table 2), (p-1) I with
 * longer weight gradients; p ranks, times F, I, W of forward, input and weight
 * gradient. */
static void zb_h1_saves_a_weight_gradient_a_rank(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_SIZES; i++) {
        const ms_schedule *schedule = made_schedule(
            test_cx()->arena, plain_shape(MS_ZB_H1, sizes[i].p, sizes[i].m));
        for (int k = 0; k < NUM_TRIPLES; k++) {
            ms_schedule_times t = triple(k);
            expect_bubble(schedule, t,
                          (sizes[i].p - 1) * (t.backward_input +
                                              fmax(t.forward - t.backward_weight, 0)));
        }
    }
}

/* Bubble of ZB-H2: (p-1)(F+I-2W) (arXiv 2401.10241, table 2) where W <= F and W <= I; p
 * ranks, times F, I, W of forward, input and weight gradient. */
static void zb_h2_saves_two(void **state)
{
    (void)state;
    int num_tested = 0;
    for (size_t i = 0; i < NUM_SIZES; i++) {
        const ms_schedule *schedule = made_schedule(
            test_cx()->arena, plain_shape(MS_ZB_H2, sizes[i].p, sizes[i].m));
        for (int k = 0; k < NUM_TRIPLES; k++) {
            ms_schedule_times t = triple(k);
            if (t.backward_weight > fmin(t.forward, t.backward_input))
                continue;
            num_tested++;
            expect_bubble(schedule, t,
                          (sizes[i].p - 1) *
                              (t.forward + t.backward_input - 2 * t.backward_weight));
        }
    }
    ASSERT_INT(num_tested, 3 * (25 + 16 + 9 + 4 + 1));
}

/* ZB-V has no bubble where forward, input gradient and weight gradient take equal times
 * (arXiv 2401.10241, section 6). At other times it has one, except on 2 ranks with long
 * weight gradients. */
static void zb_v_leaves_nothing_at_equal_times_only(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_SIZES; i++) {
        const ms_schedule *schedule =
            made_schedule(test_cx()->arena, plain_shape(MS_ZB_V, sizes[i].p, sizes[i].m));
        for (int k = 0; k < NUM_TRIPLES; k++) {
            ms_schedule_times t = triple(k);
            if (t.forward == t.backward_input && t.forward == t.backward_weight)
                expect_bubble(schedule, t, 0);
            else if (sizes[i].p > 2)
                assert_true(largest_span_bubble(schedule, t) > 0);
        }
    }
}

static const ms_schedule_times unit_times = {1, 1, 1, 0};

/* Bubble of DualPipe and DualPipeV with S model stages: (S/2-1)(F&B + B - 3W) at equal
 * times, where B is I + W and an overlapped pair F&B takes as long as both
 * (deepseek-ai/DualPipe, README). */
static void pairs_leave_what_their_authors_say_at_equal_times(void **state)
{
    (void)state;
    static const size dual[] = {{4, 8}, {4, 10}, {8, 20}, {8, 32}, {16, 40}};
    for (size_t i = 0; i < sizeof dual / sizeof dual[0]; i++) {
        int p = dual[i].p, m = dual[i].m;
        double pair = 3, backward = 2, weight = 1;
        double unit = pair + backward - 3 * weight;
        ms_arena *arena = test_cx()->arena;
        expect_bubble(made_schedule(arena, plain_shape(MS_DUALPIPE, p, m)), unit_times,
                      (p / 2 - 1) * unit);
        expect_bubble(made_schedule(arena, plain_shape(MS_DUALPIPEV, p, m)), unit_times,
                      (p - 1) * unit);
    }
}

/* DualPipe with overlapped pairs as one action, or as two halves that each send their own
 * result early; expected times by hand from deepseek-ai/DualPipe's action lists. */
static void halves_of_pairs_that_hand_on_early_halve_the_bubble(void **state)
{
    (void)state;
    static const struct {
        int p, m;
        double makespan, bubble, early_bubble;
    } cases[] = {
        {4, 8, 26, 2, 1}, {4, 10, 32, 2, 1}, {8, 20, 66, 6, 3}, {8, 32, 102, 6, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ms_arena *arena = test_cx()->arena;
        ms_schedule_shape shape = plain_shape(MS_DUALPIPE, cases[i].p, cases[i].m);
        const ms_schedule *whole = made_schedule(arena, shape);
        ASSERT_NEAR(ms_schedule_run(arena, whole, &unit_times).makespan,
                    cases[i].makespan, 0);
        expect_bubble(whole, unit_times, cases[i].bubble);
        shape.early_release = true;
        expect_bubble(made_schedule(arena, shape), unit_times, cases[i].early_bubble);
    }
}

/* ---- chunks in flight ---- */

/* Most micro-batches (chunks) in flight on rank r: GPipe m; 1F1B min(m, p-r); interleaved
 * min(m v, 2(p-1-r) + (v-1) g + 1) with groups of g (Narayanan et al. 2021); looped
 * breadth-first m v; ZB-H1 p and ZB-H2 2p-1 until weight gradients (arXiv 2401.10241,
 * table 2); ZB-V 2p; DualPipe p + 1 and DualPipeV 2p + 1 (deepseek-ai/DualPipe, README).
 * p ranks, m micro-batches, v chunks a rank. */
static void chunks_in_flight_are_the_published_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_SIZES; i++) {
        int p = sizes[i].p, m = sizes[i].m, v = 2;
        for (int r = 0; r < p; r++) {
            const struct {
                ms_schedule_kind kind;
                int want;
            } cases[] = {{MS_GPIPE, m},
                         {MS_1F1B, p - r},
                         {MS_INTERLEAVED, 2 * (p - 1 - r) + (v - 1) * p + 1},
                         {MS_LOOPED_BFS, m * v},
                         {MS_ZB_H1, p},
                         {MS_ZB_H2, 2 * p - 1},
                         {MS_ZB_V, 2 * p},
                         {MS_DUALPIPE, p + 1},
                         {MS_DUALPIPEV, 2 * p + 1}};
            for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
                ms_schedule_shape shape = plain_shape(cases[c].kind, p, m);
                if (cases[c].kind == MS_LOOPED_BFS)
                    shape.virtual_stages = v;
                if (cases[c].kind == MS_INTERLEAVED)
                    shape.group = p;
                int got =
                    ms_schedule_in_flight(made_schedule(test_cx()->arena, shape), r);
                if (got != cases[c].want)
                    fail_msg("%s p=%d m=%d rank %d: %d in flight, published %d",
                             ms_schedule_names[shape.kind], p, m, r, got, cases[c].want);
            }
        }
    }
}

/* ---- sends ---- */

/* Time that sends, each taking `send`, add to a step. */
static double send_extra(ms_schedule_shape shape, double send)
{
    ms_arena *arena = test_cx()->arena;
    const ms_schedule *schedule = made_schedule(arena, shape);
    ms_schedule_times with = unit_times;
    with.send = send;
    return ms_schedule_run(arena, schedule, &with).makespan -
           ms_schedule_run(arena, schedule, &unit_times).makespan;
}

static void expect_sends(ms_schedule_shape shape, double send, double want_sends)
{
    double got = send_extra(shape, send) / send;
    if (!(fabs(got - want_sends) <= 1e-9 * want_sends))
        fail_msg("%s p=%d m=%d v=%d g=%d: %.12g sends are exposed, law %g",
                 ms_schedule_names[shape.kind], shape.num_ranks, shape.num_microbatches,
                 shape.virtual_stages, shape.group, got, want_sends);
}

/* Time that sends expose, derived here and exact: 1F1B has only p micro-batches in flight
 * on p ranks, so each p micro-batches wait for 2(p-1) sends, the first and last p for
 * 2(p-2) more; with twice as many in flight (groups of 2p, ZB-H2) only warm-up and drain
 * wait. Holds for sends of up to a chunk's forward, in zero-bubble schedules a tenth of
 * it. */
static void exposed_sends_follow_from_what_is_in_flight(void **state)
{
    (void)state;
    static const size shapes[] = {{2, 4}, {4, 8}, {4, 16}, {8, 16}, {8, 32}, {16, 64}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        int p = shapes[i].p, m = shapes[i].m;
        for (double c = 0.1; c < 1.1; c += 0.3)
            expect_sends(plain_shape(MS_1F1B, p, m), c,
                         2.0 * (p - 1) * m / p + 2 * (p - 2));
        for (int v = 2; v <= 3; v++) {
            ms_schedule_shape shape = plain_shape(MS_INTERLEAVED, p, m);
            shape.virtual_stages = v;
            shape.group = p;
            expect_sends(shape, 0.1, 2 * (v * p - 1));
            expect_sends(shape, 1, 2 * (v * p - 1));
            shape.group = 2 * p;
            expect_sends(shape, 0.1, 2 * (p - 1));
            expect_sends(shape, 1, 2 * (p - 1));
        }
        expect_sends(plain_shape(MS_ZB_H1, p, m), 0.1, 4 * (p - 1));
        expect_sends(plain_shape(MS_ZB_H2, p, m), 0.1, p - 1);
    }
}

/* ---- groups ---- */

/* Whether an interleaved schedule of p ranks, m micro-batches and v chunks a rank runs to
 * its end without deadlock, even if it is not allowed. */
static bool order_runs(int p, int m, int v, int group)
{
    ms_ctx *cx = test_cx();
    ms_schedule_shape shape = {.kind = MS_INTERLEAVED,
                               .num_ranks = p,
                               .num_microbatches = m,
                               .virtual_stages = v,
                               .group = group};
    ms_action_list *lists = MS_NEW_ARRAY(cx->arena, p, ms_action_list);
    for (int r = 0; r < p; r++)
        lists[r].arena = cx->arena;
    for (int rank = 0; rank < p; rank++)
        ms_family_interleaved.fill_rank(&shape, rank, &lists[rank]);
    int *first = MS_NEW_ARRAY(cx->arena, p + 1, int);
    for (int r = 0; r < p; r++)
        first[r + 1] = first[r] + lists[r].num;
    ms_action *actions = MS_NEW_ARRAY(cx->arena, first[p], ms_action);
    for (int r = 0; r < p; r++)
        memcpy(actions + first[r], lists[r].actions,
               (size_t)lists[r].num * sizeof *actions);
    short *rank_of_stage = MS_NEW_ARRAY(cx->arena, p * v, short);
    for (int s = 0; s < p * v; s++)
        rank_of_stage[s] = (short)(s % p);
    ms_schedule_table table = {.num_ranks = p,
                               .num_stages = p * v,
                               .num_microbatches = m,
                               .first_action = first,
                               .actions = actions,
                               .rank_of_stage = rank_of_stage};
    ms_schedule_shape custom = {.kind = MS_CUSTOM,
                                .num_ranks = p,
                                .num_microbatches = m,
                                .virtual_stages = v,
                                .table = &table};
    const ms_schedule *schedule;
    return ms_schedule_open(cx, cx->arena, &custom, MS_NOWHERE, &schedule) == MS_OK;
}

/* Interleaved groups smaller than the pipeline deadlock: of runs on 4 ranks, all 12 with
 * groups of 1 and 2, and 3 of 6 with groups of 3. Megatron-LM requires groups of at least
 * p and at most m micro-batches. */
static void groups_smaller_than_the_pipeline_deadlock(void **state)
{
    (void)state;
    int deadlocks[5] = {0};
    for (int m = 4; m <= 12; m += 4)
        for (int v = 2; v <= 3; v++)
            for (int g = 1; g <= 4; g++) {
                bool runs = order_runs(4, m, v, g);
                deadlocks[g] += !runs;
                ms_schedule_shape shape = plain_shape(MS_INTERLEAVED, 4, m);
                shape.virtual_stages = v;
                shape.group = g;
                if (!runs) /* a shape that deadlocks is never allowed */
                    assert_false(ms_schedule_allows(&shape, NULL));
            }
    ASSERT_INT(deadlocks[1] + deadlocks[2], 12);
    ASSERT_INT(deadlocks[3], 3);
    ASSERT_INT(deadlocks[4], 0);
}

/* Interleaved schedules with fewer micro-batches than ranks run in one group (Llama 3,
 * arXiv 2407.21783, section 3.3.2). */
static void one_group_of_few_microbatches_runs(void **state)
{
    (void)state;
    static const int ranks[] = {2, 3, 4, 6, 8};
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
        for (int m = 1; m < ranks[i]; m++)
            for (int v = 2; v <= 4; v++) {
                assert_true(order_runs(ranks[i], m, v, m));
                ms_schedule_shape shape = plain_shape(MS_INTERLEAVED, ranks[i], m);
                shape.virtual_stages = v;
                shape.group = m;
                assert_true(ms_schedule_allows(&shape, NULL));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_backwards_leave_p_minus_1_of_forward_and_backward),
        cmocka_unit_test(zb_h1_saves_a_weight_gradient_a_rank),
        cmocka_unit_test(zb_h2_saves_two),
        cmocka_unit_test(zb_v_leaves_nothing_at_equal_times_only),
        cmocka_unit_test(pairs_leave_what_their_authors_say_at_equal_times),
        cmocka_unit_test(halves_of_pairs_that_hand_on_early_halve_the_bubble),
        cmocka_unit_test(chunks_in_flight_are_the_published_ones),
        cmocka_unit_test(exposed_sends_follow_from_what_is_in_flight),
        cmocka_unit_test(groups_smaller_than_the_pipeline_deadlock),
        cmocka_unit_test(one_group_of_few_microbatches_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
