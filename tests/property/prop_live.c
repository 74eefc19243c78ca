/* How many micro-batches schedules keep alive per stage, over random shapes: the
 * shortcuts that the memory model takes are exact. Failures print their seed. */
#include "base/rng.h"
#include "sim/step/step.h"

#include "tests/test.h"

#include <string.h>

#define MAX_CHUNKS 5

static long pick(ms_rng *rng, long low, long high)
{
    return low + (long)ms_rng_below(rng, (uint64_t)(high - low + 1));
}

/* Micro-batches alive by class of chunk, before a backward and before a weight half. */
typedef struct instant {
    int counts[2 * MAX_CHUNKS], at_work, kind;
} instant;

/* Lists every start of a backward on a range of ranks; returns their number. */
static int list_instants(const ms_schedule *s, const ms_live_ranks *ranks, instant *out)
{
    int num = 0, half = ranks->num_classes;
    for (int rank = ranks->first_rank; rank < ranks->first_rank + ranks->num_ranks;
         rank++) {
        instant now = {{0}, 0, 0};
        for (int i = s->first_action[rank]; i < s->first_action[rank + 1]; i++) {
            const ms_action *a = &s->actions[i];
            bool pair = a->kind == MS_OVERLAP;
            int stage = pair ? a->backward_stage : a->stage;
            if (a->kind == MS_FORWARD || pair)
                now.counts[ranks->class_of[ms_schedule_chunk(&s->shape, a->stage)]]++;
            if (a->kind == MS_FORWARD)
                continue;
            now.at_work = ranks->class_of[ms_schedule_chunk(&s->shape, stage)];
            now.kind = pair ? MS_BACKWARD : a->kind;
            out[num++] = now;
            now.counts[now.at_work + (now.kind == MS_BACKWARD_WEIGHT ? half : 0)]--;
            now.counts[half + now.at_work] += now.kind == MS_BACKWARD_INPUT;
        }
    }
    return num;
}

static bool covers(const int *by, const int *counts, int width)
{
    for (int c = 0; c < width; c++)
        if (by[c] < counts[c])
            return false;
    return true;
}

/* Whether every instant is covered by a row of its class and kind, and every row is one
 * of the instants. */
static bool rows_are_right(const ms_live_rows *rows, const instant *all, int num,
                           int width)
{
    bool right = true;
    for (int i = 0; i < num; i++) {
        bool found = false;
        for (int j = 0; j < rows->num && !found; j++)
            found = rows->at_work[j] == all[i].at_work && rows->kinds[j] == all[i].kind &&
                    covers(rows->counts + j * width, all[i].counts, width);
        right = right && found;
    }
    for (int j = 0; j < rows->num; j++) {
        bool found = false;
        for (int i = 0; i < num && !found; i++)
            found = rows->at_work[j] == all[i].at_work && rows->kinds[j] == all[i].kind &&
                    memcmp(rows->counts + j * width, all[i].counts,
                           (size_t)width * sizeof(int)) == 0;
        right = right && found;
    }
    return right;
}

/* Compares the rows of `of` with the instants of the listed schedule, over some ranks from
 * `first_rank` on, with chunks in random classes. */
static bool keeps_alike(ms_rng *rng, const ms_schedule *of, const ms_schedule *listed,
                        int first_rank)
{
    ms_arena *arena = test_cx()->arena;
    int class_of[MAX_CHUNKS], num_classes = (int)pick(rng, 1, of->num_chunks);
    for (int c = 0; c < of->num_chunks; c++)
        class_of[c] = (int)pick(rng, 0, num_classes - 1);
    ms_live_ranks ranks = {first_rank,
                           (int)pick(rng, 1, of->shape.num_ranks - first_rank),
                           num_classes, class_of};
    instant *all =
        MS_NEW_ARRAY(arena, listed->first_action[listed->shape.num_ranks], instant);
    int num = list_instants(listed, &ranks, all);
    ms_live_rows rows = ms_schedule_live_rows(arena, of, &ranks);
    return rows_are_right(&rows, all, num, 2 * num_classes);
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
                                   .virtual_stages = (int)pick(rng, 1, MAX_CHUNKS)};
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
            if (!keeps_alike(&rng, whole, whole, rank) ||
                !keeps_alike(&rng, outline, whole, rank) ||
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
