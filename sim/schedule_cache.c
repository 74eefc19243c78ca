/* Schedules by shape. */
#include "sim/schedule_cache.h"

#include "base/map.h"

struct ms_schedule_cache {
    ms_map shapes;
    const ms_schedule **schedules;
    int capacity;
};

ms_schedule_cache *ms_schedule_cache_open(void)
{
    ms_arena *arena = ms_arena_open();
    ms_schedule_cache *cache = MS_NEW(arena, ms_schedule_cache);
    cache->shapes.arena = arena;
    return cache;
}

void ms_schedule_cache_close(ms_schedule_cache *cache)
{
    ms_arena_close(cache->shapes.arena);
}

/* A shape without padding. */
typedef struct shape_key {
    int numbers[6];
    double figures[7];
    const ms_schedule_table *table;
} shape_key;
_Static_assert(sizeof(shape_key) == 6 * sizeof(int) + 7 * sizeof(double) + sizeof(void *),
               "the bytes of a key are its members");

static shape_key key_of(const ms_schedule_shape *s)
{
    return (shape_key){{(int)s->kind, s->num_ranks, s->num_microbatches,
                        s->virtual_stages, s->group, s->early_release},
                       {s->memory_limit, s->weight_share, s->head_share, s->times.forward,
                        s->times.backward_input, s->times.backward_weight, s->times.send},
                       s->table};
}

const ms_schedule *ms_schedule_cached(ms_schedule_cache *cache,
                                      const ms_schedule_shape *shape)
{
    ms_arena *arena = cache->shapes.arena;
    int num = cache->shapes.num;
    shape_key key = key_of(shape);
    int i = ms_map_add(&cache->shapes, &key, sizeof key);
    if (i == num) {
        MS_MAKE_ROOM(arena, cache->schedules, num, cache->capacity, 64);
        cache->schedules[i] = ms_schedule_make(arena, shape);
    }
    return cache->schedules[i];
}

/* Families whose lists repeat after the warm-up: those of 4p micro-batches (2p: 1F1B)
 * live as those of any more, begin alike and end alike. With groups of p micro-batches
 * the warm-up of at most (v + 1) p forwards ends after two groups. GPipe and looped BFS
 * keep all, and are short; orders that are built for durations repeat as these allow,
 * which is not known before. */
static int brief_microbatches(const ms_schedule_shape *shape)
{
    int p = shape->num_ranks, m = shape->num_microbatches;
    switch (shape->kind) {
    case MS_1F1B:
    case MS_ZB_H1:
        return 2 * p;
    case MS_ZB_H2:
    case MS_ZB_V:
    case MS_DUALPIPE:
    case MS_DUALPIPEV:
        return 4 * p;
    case MS_INTERLEAVED:
    case MS_INTERLEAVED_ZB:
    case MS_COMBINED_1F1B:
        return m % p == 0 && ms_schedule_group(shape) == p ? 4 * p : m;
    case MS_GPIPE:
    case MS_LOOPED_BFS:
    case MS_ZB_AUTO:
    case MS_V_HALF:
    case MS_V_MIN:
    case MS_CUSTOM:
    case MS_NUM_SCHEDULES:
        break;
    }
    return m;
}

const ms_schedule *ms_live_cached(ms_schedule_cache *cache,
                                  const ms_schedule_shape *shape)
{
    ms_schedule_shape brief = *shape;
    int few = brief_microbatches(shape);
    if (few < brief.num_microbatches)
        brief.num_microbatches = few;
    return ms_schedule_cached(cache, &brief);
}
