/* How many micro-batches schedules keep alive per stage, over random shapes: the
 * shortcuts that the memory model takes are exact. Failures print their seed. */
#include "base/rng.h"
#include "sim/step/step.h"

#include "tests/test.h"

static long pick(ms_rng *rng, long low, long high)
{
    return low + (long)ms_rng_below(rng, (uint64_t)(high - low + 1));
}

/* Whether some row of micro-batches alive is of the same chunk and kind as row i of `of`,
 * and in every count at least as large. */
static bool covers_row(const ms_live_rows *by, const ms_live_rows *of, int i, int width)
{
    for (int j = 0; j < by->num; j++) {
        bool covers = by->chunk[j] == of->chunk[i] && by->kind[j] == of->kind[i];
        for (int c = 0; c < width; c++)
            covers = covers && by->counts[j * width + c] >= of->counts[i * width + c];
        if (covers)
            return true;
    }
    return false;
}

/* Whether two schedules of a family keep as much alive on a range of ranks. */
static bool keep_alike(const ms_schedule *a, const ms_schedule *b, int first_rank,
                       int num_ranks)
{
    ms_arena *arena = test_cx()->arena;
    ms_live_rows of_a = ms_schedule_live_rows(arena, a, first_rank, num_ranks);
    ms_live_rows of_b = ms_schedule_live_rows(arena, b, first_rank, num_ranks);
    int width = 2 * a->num_chunks;
    bool same = true;
    for (int i = 0; i < of_a.num; i++)
        same = same && covers_row(&of_b, &of_a, i, width);
    for (int i = 0; i < of_b.num; i++)
        same = same && covers_row(&of_a, &of_b, i, width);
    return same;
}

static bool edges_alike(const ms_schedule *a, const ms_schedule *b, int rank)
{
    const ms_schedule_edges *of_a = &a->edges, *of_b = &b->edges;
    bool same = of_a->first_backward[rank] == of_b->first_backward[rank] &&
                of_a->last_gradient[rank] == of_b->last_gradient[rank];
    for (int c = 0; c < a->num_chunks; c++) {
        long at = (long)rank * a->num_chunks + c;
        same = same && of_a->warmup[at] == of_b->warmup[at] &&
               of_a->cooldown[at] == of_b->cooldown[at];
    }
    return same;
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

static void outlines_keep_as_much_alive_as_schedules(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        ms_rng rng = ms_rng_seed(seed + 10000);
        ms_schedule_shape shape = random_shape(&rng);
        ms_schedule *whole = ms_schedule_make(test_cx()->arena, &shape);
        ms_schedule_cache *cache = ms_schedule_cache_open();
        const ms_schedule *outline = ms_outline_cached(cache, &shape, true);
        for (int rank = 0; rank < shape.num_ranks; rank++) {
            int num_ranks = (int)pick(&rng, 1, shape.num_ranks - rank);
            if (!keep_alike(whole, outline, rank, 1) ||
                !keep_alike(whole, outline, rank, num_ranks) ||
                !edges_alike(whole, outline, rank))
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
        cmocka_unit_test(outlines_keep_as_much_alive_as_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
