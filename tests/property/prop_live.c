/* How many micro-batches schedules keep alive per stage, over random shapes: the
 * shortcuts that the memory model takes are exact. Failures print their seed. */
#include "base/rng.h"
#include "sim/step/step.h"

#include "tests/test.h"

static long pick(ms_rng *rng, long low, long high)
{
    return low + (long)ms_rng_below(rng, (uint64_t)(high - low + 1));
}

/* Live vectors count the micro-batches alive in each chunk of a rank. Returns whether
 * some live vector of `rank` in schedule `by` is, in every chunk, at least as large as
 * live vector `i` of schedule `s`, which has the same family. */
static bool covered_by_rank(const ms_schedule *by, int rank, const ms_schedule *s, int i)
{
    int width = 2 * s->num_chunks;
    for (int j = by->first_live[rank]; j < by->first_live[rank + 1]; j++) {
        bool covers =
            by->live_chunk[j] == s->live_chunk[i] && by->live_kind[j] == s->live_kind[i];
        for (int c = 0; c < width; c++)
            covers =
                covers && by->live[(long)j * width + c] >= s->live[(long)i * width + c];
        if (covers)
            return true;
    }
    return false;
}

/* A random legal shape of any schedule family. */
static ms_schedule_shape random_shape(ms_rng *rng)
{
    for (;;) {
        ms_schedule_shape shape = {.kind = (ms_schedule_kind)pick(rng, 0, MS_CUSTOM - 1),
                                   .num_ranks = (int)pick(rng, 1, 9),
                                   .num_microbatches = (int)pick(rng, 1, 96),
                                   .virtual_stages = (int)pick(rng, 1, 5)};
        if (ms_schedule_allows(&shape, NULL))
            return shape;
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
        const ms_schedule *brief = ms_live_cached(cache, &shape, test_cx()->arena);
        for (int rank = 0; rank < shape.num_ranks; rank++) {
            bool same = true;
            for (int i = whole->first_live[rank]; i < whole->first_live[rank + 1]; i++)
                same = same && covered_by_rank(brief, rank, whole, i);
            for (int i = brief->first_live[rank]; i < brief->first_live[rank + 1]; i++)
                same = same && covered_by_rank(whole, rank, brief, i);
            for (int c = 0; c < whole->num_chunks; c++) {
                long at = (long)rank * whole->num_chunks + c;
                same = same && whole->edges.warmup[at] == brief->edges.warmup[at] &&
                       whole->edges.cooldown[at] == brief->edges.cooldown[at];
            }
            same =
                same &&
                whole->edges.first_backward[rank] == brief->edges.first_backward[rank] &&
                whole->edges.last_gradient[rank] == brief->edges.last_gradient[rank];
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
        cmocka_unit_test(short_schedules_have_the_same_live_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
