/* What schedules keep alive, over random shapes: the shortcuts that memory takes are exact. Failures print their seed. */
#include "base/rng.h"
#include "sim/step.h"

#include "tests/test.h"

static long pick(ms_rng *rng, long low, long high)
{
    return low + (long)ms_rng_below(rng, (uint64_t)(high - low + 1));
}

static bool covers(const int *a, const int *b, int width)
{
    for (int i = 0; i < width; i++)
        if (a[i] < b[i])
            return false;
    return true;
}

static bool covered_by_rank(const ms_schedule *s, const int *vector, int rank)
{
    int width = s->shape.virtual_stages;
    for (int i = s->first_live[rank]; i < s->first_live[rank + 1]; i++)
        if (covers(s->live + (long)i * width, vector, width))
            return true;
    return false;
}

static ms_schedule_shape random_shape(ms_rng *rng)
{
    for (;;) {
        ms_schedule_shape shape = {
            .kind = (ms_schedule_kind)pick(rng, 0, MS_NUM_SCHEDULES - 1),
            .num_ranks = (int)pick(rng, 1, 9),
            .num_microbatches = (int)pick(rng, 1, 64),
            .virtual_stages = 1};
        if (shape.kind == MS_INTERLEAVED)
            shape.virtual_stages = (int)pick(rng, 2, 5);
        if (ms_schedule_allows(&shape, NULL))
            return shape;
    }
}

/* Memory of a run of equal ranks is that of its first: each rank keeps no more than the one before it. */
static void earlier_ranks_keep_at_least_as_much(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        ms_rng rng = ms_rng_seed(seed);
        ms_schedule_shape shape = random_shape(&rng);
        ms_schedule *schedule = ms_schedule_make(test_cx()->arena, &shape);
        int width = shape.virtual_stages;
        for (int rank = 1; rank < shape.num_ranks; rank++)
            for (int i = schedule->first_live[rank]; i < schedule->first_live[rank + 1];
                 i++)
                if (!covered_by_rank(schedule, schedule->live + (long)i * width,
                                     rank - 1))
                    fail_msg(
                        "seed %d: %s p %d m %d v %d, rank %d keeps what rank %d does not",
                        (int)seed, ms_schedule_names[shape.kind], shape.num_ranks,
                        shape.num_microbatches, shape.virtual_stages, rank, rank - 1);
    }
}

static void short_schedules_have_the_same_live_vectors(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        ms_rng rng = ms_rng_seed(seed + 10000);
        ms_schedule_shape shape = random_shape(&rng);
        ms_schedule *whole = ms_schedule_make(test_cx()->arena, &shape);
        ms_schedule_cache *cache = ms_schedule_cache_open();
        const ms_schedule *brief = ms_live_cached(cache, &shape);
        int width = shape.virtual_stages;
        for (int rank = 0; rank < shape.num_ranks; rank++) {
            bool same = true;
            for (int i = whole->first_live[rank]; i < whole->first_live[rank + 1]; i++)
                same =
                    same && covered_by_rank(brief, whole->live + (long)i * width, rank);
            for (int i = brief->first_live[rank]; i < brief->first_live[rank + 1]; i++)
                same =
                    same && covered_by_rank(whole, brief->live + (long)i * width, rank);
            if (!same)
                fail_msg("seed %d: %s p %d m %d v %d, rank %d differs", (int)seed,
                         ms_schedule_names[shape.kind], shape.num_ranks,
                         shape.num_microbatches, shape.virtual_stages, rank);
        }
        ms_schedule_cache_close(cache);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(earlier_ranks_keep_at_least_as_much),
        cmocka_unit_test(short_schedules_have_the_same_live_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
