/* Condensed schedules, which leave out most of the repeated middle of long ones, against
 * whole ones, over random shapes of every family. Failures print their seed. */
#include "base/rng.h"
#include "sim/step/replay.h"

#include "tests/test.h"

#include <math.h>

static int between(ms_rng *rng, int low, int high)
{
    return low + (int)ms_rng_below(rng, (uint64_t)(high - low + 1));
}

/* A random shape that condenses. */
static ms_schedule_shape random_long_shape(ms_rng *rng)
{
    for (;;) {
        int least, p = between(rng, 1, 6);
        ms_schedule_shape shape = {.kind =
                                       (ms_schedule_kind)between(rng, 0, MS_CUSTOM - 1),
                                   .num_ranks = p,
                                   .num_microbatches = p * between(rng, 24, 400),
                                   .virtual_stages = between(rng, 1, 3),
                                   .early_release = between(rng, 0, 1) == 1};
        if (!ms_schedule_traits_of(shape.kind).groups)
            shape.num_microbatches += between(rng, 0, 1) * 2;
        if (ms_schedule_allows(&shape, NULL) && ms_schedule_period(&shape, &least) > 0)
            return shape;
    }
}

/* ---- lists ---- */

static bool is_shifted(const ms_action *a, const ms_action *b, int by)
{
    return a->kind == b->kind && a->stage == b->stage &&
           a->microbatch + by == b->microbatch &&
           (a->kind != MS_OVERLAP ||
            (a->backward_stage == b->backward_stage &&
             a->backward_microbatch + by == b->backward_microbatch));
}

/* Number of equal actions at the beginning (shift 0) or the end of a rank's lists in two
 * schedules; at the end, micro-batches differ by `shift`. */
static int num_alike(const ms_schedule *a, const ms_schedule *b, int rank, int shift)
{
    int first = a->first_action[rank], num = a->first_action[rank + 1] - first;
    int other = b->first_action[rank], more = b->first_action[rank + 1] - other - num;
    int alike = 0;
    while (alike < num) {
        int i = shift == 0 ? alike : num - 1 - alike;
        if (!is_shifted(&a->actions[first + i],
                        &b->actions[other + i + (shift == 0 ? 0 : more)], shift))
            break;
        alike++;
    }
    return alike;
}

/* Micro-batches of one direction by which schedules of m and `more` micro-batches differ. */
static int shift_of(const ms_schedule *a, const ms_schedule *b)
{
    int shift = b->shape.num_microbatches - a->shape.num_microbatches;
    return ms_schedule_placement(a->shape.kind) == MS_PLACE_BOTH_WAYS ? shift / 2 : shift;
}

/* The lists of a condensed schedule, and those of one period less, are those of the whole
 * one less some of a middle that repeats: beginning and end overlap in all three. */
static void lists_differ_by_their_middle(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        ms_rng rng = ms_rng_seed(seed);
        ms_arena *arena = ms_arena_open();
        ms_schedule_shape shape = random_long_shape(&rng);
        const ms_schedule *whole = ms_schedule_make(arena, &shape),
                          *few = ms_schedule_condense(arena, &shape, 0);
        assert_non_null(few->shorter);
        int least, period = ms_schedule_period(&shape, &least);
        assert_int_equal(few->shape.num_microbatches + few->num_left_out * period,
                         shape.num_microbatches);
        assert_int_equal(few->shorter->shape.num_microbatches + period,
                         few->shape.num_microbatches);
        const ms_schedule *pairs[][2] = {{few, whole}, {few->shorter, few}};
        for (int i = 0; i < 2; i++) {
            const ms_schedule *a = pairs[i][0], *b = pairs[i][1];
            for (int rank = 0; rank < shape.num_ranks; rank++) {
                int num = a->first_action[rank + 1] - a->first_action[rank];
                int alike =
                    num_alike(a, b, rank, 0) + num_alike(a, b, rank, shift_of(a, b));
                if (alike < num)
                    fail_msg("seed %d: %s p %d m %d v %d, rank %d", (int)seed,
                             ms_schedule_names[shape.kind], shape.num_ranks,
                             shape.num_microbatches, shape.virtual_stages, rank);
            }
        }
        ms_arena_close(arena);
    }
}

/* ---- replay ---- */

/* Random durations around 1, `spread` apart. */
static void random_times(ms_rng *rng, double spread, int num_stages, ms_stage_times *out)
{
    for (int s = 0; s < num_stages; s++) {
        double *figures[] = {
            &out[s].forward_s,       &out[s].first_forward_s, &out[s].backward_s,
            &out[s].last_backward_s, &out[s].input_s,         &out[s].weight_s,
            &out[s].last_weight_s,   &out[s].regather_s,      &out[s].send_forward_s,
            &out[s].send_backward_s, &out[s].reduce_s,        &out[s].release_s};
        out[s] = (ms_stage_times){0};
        for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
            *figures[i] = (i < 7 ? 1.0 : 0.1) * (1.0 + spread * ms_rng_uniform(rng));
        out[s].regather_s *= (double)between(rng, 0, 1);
        out[s].reduce_tail_s = 0.1 * ms_rng_uniform(rng);
    }
}

static ms_replay_result run(const ms_schedule *schedule, const ms_stage_times *times,
                            ms_arena *arena)
{
    int num = schedule->shape.num_ranks;
    ms_replay_result result = {.start_s = MS_NEW_ARRAY(arena, num, double),
                               .end_s = MS_NEW_ARRAY(arena, num, double),
                               .busy_s = MS_NEW_ARRAY(arena, num, double)};
    ms_replay(schedule, times, arena, &result);
    return result;
}

/* Condensed replay states its error, which holds; where all ranks advance alike it is
 * exact to rounding. */
static void replay_is_exact_to_its_error(void **state)
{
    (void)state;
    static const double spreads[] = {1.0, 0.1, 1e-3};
    int num_exact = 0, num_trials = 0;
    double most = 0.0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        ms_rng rng = ms_rng_seed(seed + 5000);
        ms_arena *arena = ms_arena_open();
        ms_schedule_shape shape = random_long_shape(&rng);
        const ms_schedule *whole = ms_schedule_make(arena, &shape),
                          *few = ms_schedule_condense(arena, &shape, 0);
        ms_stage_times *times = MS_NEW_ARRAY(arena, whole->num_stages, ms_stage_times);
        random_times(&rng, spreads[seed % 3], whole->num_stages, times);
        ms_replay_result a = run(whole, times, arena), b = run(few, times, arena);
        double rounding_s = 1e-11 * a.makespan_s;
        ASSERT_NEAR(a.error_s, 0.0, 0.0);
        num_exact += b.error_s <= 1e-9 * b.makespan_s;
        num_trials++;
        most = b.error_s / b.makespan_s > most ? b.error_s / b.makespan_s : most;
        for (int r = 0; r < shape.num_ranks; r++) {
            if (fabs(a.end_s[r] - b.end_s[r]) > b.error_s + rounding_s)
                fail_msg("seed %d: %s p %d m %d v %d, rank %d: %.17g, whole %.17g, error "
                         "%.3g",
                         (int)seed, ms_schedule_names[shape.kind], shape.num_ranks,
                         shape.num_microbatches, shape.virtual_stages, r, b.end_s[r],
                         a.end_s[r], b.error_s);
            ASSERT_NEAR(a.busy_s[r], b.busy_s[r], 1e-11);
            ASSERT_NEAR(a.start_s[r], b.start_s[r], 0.0);
        }
        assert_true(fabs(a.makespan_s - b.makespan_s) <= b.error_s + rounding_s);
        ms_arena_close(arena);
    }
    print_message("  %d of %d exact, largest error %.2g of the makespan\n", num_exact,
                  num_trials, most);
    assert_true(num_exact > num_trials / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_differ_by_their_middle),
        cmocka_unit_test(replay_is_exact_to_its_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
