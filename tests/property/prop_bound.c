/* Lower bounds of pipeline times against the replay of the schedule: 10,000 random
 * pipelines of every schedule family, with a duration of its own for each stage.
 * Failures print their seed. */
#include "base/rng.h"
#include "sim/step/bound.h"

#include "tests/test.h"

#define NUM_SHAPES   125
#define PER_SHAPE    80
#define MAX_STAGES   40
#define LATEST_START 10.0

static int between(ms_rng *rng, int low, int high)
{
    return low + (int)ms_rng_below(rng, (uint64_t)(high - low + 1));
}

static ms_schedule_shape random_shape(ms_rng *rng, ms_schedule_kind kind)
{
    for (;;) {
        ms_schedule_shape shape = {.kind = kind,
                                   .num_ranks = between(rng, 1, 8),
                                   .num_microbatches = between(rng, 1, 20),
                                   .virtual_stages = between(rng, 1, 4)};
        if (ms_schedule_allows(&shape, NULL))
            return shape;
    }
}

/* A split of layers over stages in which no two stages and no two ranks are equal, so
 * that each is a class by itself. */
static ms_split *split_of(ms_arena *arena, const ms_schedule_shape *shape)
{
    ms_split *split = MS_NEW(arena, ms_split);
    split->num_ranks = shape->num_ranks;
    split->num_stages = split->num_classes = ms_schedule_model_stages(shape);
    split->num_chunks = ms_schedule_chunks(shape);
    split->shape = *shape;
    int *same = MS_NEW_ARRAY(arena, split->num_stages, int);
    for (int s = 0; s < split->num_stages; s++)
        same[s] = s;
    split->class_of_stage = split->stage_of_class = same;
    ms_rank_class *runs = MS_NEW_ARRAY(arena, split->num_ranks, ms_rank_class);
    for (int rank = 0; rank < split->num_ranks; rank++) {
        int *classes = MS_NEW_ARRAY(arena, split->num_chunks, int);
        int *ones = MS_NEW_ARRAY(arena, split->num_chunks, int);
        for (int c = 0; c < split->num_chunks; c++) {
            classes[c] = ms_split_stage(split, rank, c);
            ones[c] = 1;
        }
        runs[rank] = (ms_rank_class){.first_rank = rank,
                                     .num_ranks = 1,
                                     .like = rank,
                                     .sides = ms_split_sides(split, rank),
                                     .classes = classes,
                                     .num_distinct = split->num_chunks,
                                     .distinct = classes,
                                     .multiplicity = ones};
    }
    split->runs = runs;
    split->num_runs = split->num_ranks;
    return split;
}

static double random_time(ms_rng *rng)
{
    return between(rng, 0, 9) == 0 ? 4.0 * ms_rng_uniform(rng)
                                   : 0.25 + ms_rng_uniform(rng);
}

/* Random duration of a stage's last backward (or last weight-gradient pass) in a step;
 * `seconds`: duration of the others. Mostly longer, as if gradient reductions ran beside
 * it, sometimes shorter. */
static double random_last(ms_rng *rng, double seconds)
{
    return between(rng, 0, 3) == 0 ? seconds * ms_rng_uniform(rng)
                                   : seconds + random_time(rng);
}

static ms_stage_times random_times(ms_rng *rng, double send_s)
{
    ms_stage_times t = {.forward_s = random_time(rng),
                        .input_s = random_time(rng),
                        .weight_s = random_time(rng),
                        .send_forward_s = send_s,
                        .send_backward_s = send_s};
    t.backward_s = (t.input_s + t.weight_s) * (0.8 + 0.4 * ms_rng_uniform(rng));
    t.first_forward_s = t.forward_s + random_time(rng);
    t.last_backward_s = random_last(rng, t.backward_s);
    t.last_weight_s = random_last(rng, t.weight_s);
    t.regather_s = between(rng, 0, 3) == 0 ? random_time(rng) / 4 : 0.0;
    t.late_gather_s = ms_rng_uniform(rng) * t.regather_s;
    if (between(rng, 0, 3) == 0) {
        t.release_s = LATEST_START * ms_rng_uniform(rng);
        t.reduce_s = 4.0 * ms_rng_uniform(rng);
        t.reduce_tail_s = ms_rng_uniform(rng) * t.reduce_s;
        t.weight_tail_s = ms_rng_uniform(rng) * t.reduce_s;
        t.pending_s = ms_rng_uniform(rng) * t.reduce_s;
        t.weight_pending_s = ms_rng_uniform(rng) * t.reduce_s;
        t.reduced_s = ms_rng_uniform(rng) * t.reduce_s;
        t.after_rank_s = ms_rng_uniform(rng);
    }
    return t;
}

/* Draws, for each stage, how many seconds it saves to run the stage's forward together
 * with a backward as a pair (placed[].pair_saved_s): less than the shorter of the two
 * takes. A stage's hidden_s becomes the most that its forward saves in any pair. */
static void add_savings(ms_rng *rng, ms_arena *arena, const ms_split *split,
                        ms_stage_times *times, ms_stage_times *placed)
{
    int num_placed = split->num_ranks * split->num_chunks;
    for (int s = 0; s < num_placed; s++) {
        double *saved = MS_NEW_ARRAY(arena, split->num_chunks, double);
        int stage = ms_schedule_model_stage(&split->shape, s);
        int rank = ms_schedule_rank(&split->shape, s);
        for (int c = 0; c < split->num_chunks; c++) {
            const ms_stage_times *back = &times[ms_split_stage(split, rank, c)];
            double back_s =
                fmin(back->input_s, fmin(back->backward_s, back->last_backward_s));
            saved[c] = 0.8 * ms_rng_uniform(rng) * fmin(times[stage].forward_s, back_s);
            times[stage].hidden_s = fmax(times[stage].hidden_s, saved[c]);
        }
        placed[s].pair_saved_s = saved;
    }
}

static double longest_span(const ms_replay_result *result, int num_ranks)
{
    double longest = 0.0;
    for (int r = 0; r < num_ranks; r++)
        longest = fmax(longest, result->end_s[r] - result->start_s[r]);
    return longest;
}

static double check_one(ms_rng *rng, ms_arena *arena, const ms_schedule *schedule,
                        const ms_split *split, int seed)
{
    ms_stage_times times[MAX_STAGES], placed[2 * MAX_STAGES];
    double send_s = between(rng, 0, 1) * 0.3 * ms_rng_uniform(rng);
    for (int s = 0; s < split->num_stages; s++)
        times[s] = random_times(rng, send_s);
    for (int s = 0; s < schedule->num_stages; s++)
        placed[s] = times[ms_schedule_model_stage(&schedule->shape, s)];
    if (ms_schedule_traits_of(schedule->shape.kind).overlaps)
        add_savings(rng, arena, split, times, placed);
    double end_s[8], start_s[8];
    ms_replay_result result = {.end_s = end_s, .start_s = start_s};
    ms_replay(schedule, placed, arena, &result);
    ms_order_times order = {.split = split,
                            .kind = schedule->shape.kind,
                            .times = times,
                            .microbatches =
                                ms_schedule_stage_microbatches(&schedule->shape),
                            .send_s = send_s};
    double plain_s = ms_order_bound_s(&order, arena);
    order.lists = schedule;
    double bound_s = ms_order_bound_s(&order, arena);
    order.spans = true;
    double span_s = ms_order_bound_s(&order, arena);
    if (bound_s > result.makespan_s || plain_s > bound_s ||
        span_s > longest_span(&result, schedule->shape.num_ranks))
        fail_msg("%s p %d m %d v %d seed %d: bounds %.17g and %.17g, makespan %.17g, "
                 "span %.17g of %.17g",
                 ms_schedule_names[schedule->shape.kind], schedule->shape.num_ranks,
                 schedule->shape.num_microbatches, schedule->shape.virtual_stages, seed,
                 plain_s, bound_s, result.makespan_s, span_s,
                 longest_span(&result, schedule->shape.num_ranks));
    return bound_s / result.makespan_s;
}

static void check_family(ms_schedule_kind kind)
{
    double sum_frac = 0.0;
    for (int i = 0; i < NUM_SHAPES; i++) {
        ms_rng rng = ms_rng_seed((uint64_t)(1000 * (int)kind + i));
        ms_arena *arena = ms_arena_open();
        ms_schedule_shape shape = random_shape(&rng, kind);
        const ms_schedule *schedule = ms_schedule_make(arena, &shape);
        const ms_split *split = split_of(arena, &shape);
        for (int j = 0; j < PER_SHAPE; j++) {
            ms_arena_mark mark = ms_arena_save(arena);
            sum_frac += check_one(&rng, arena, schedule, split, i);
            ms_arena_rewind(arena, mark);
        }
        ms_arena_close(arena);
    }
    double mean_frac = sum_frac / (NUM_SHAPES * PER_SHAPE);
    print_message("%s: the bound is %.1f %% of the replay on average\n",
                  ms_schedule_names[kind], 100.0 * mean_frac);
    /* A much lower bound would be of little use. It is lowest for schedules with
     * pairs, where the bound takes every forward to be in the pair that saves most. */
    assert_true(mean_frac > 0.7);
}

static void no_pipeline_of_any_family_is_faster_than_its_bound(void **state)
{
    (void)state;
    for (int kind = 0; kind < MS_CUSTOM; kind++)
        check_family((ms_schedule_kind)kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_pipeline_of_any_family_is_faster_than_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
