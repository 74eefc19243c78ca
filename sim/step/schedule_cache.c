/* Cache of pipeline schedules: a hash table by schedule shape. */
#include "sim/step/schedule_cache.h"

#include "base/map.h"

/* Schedules by shape. */
typedef struct shelf {
    ms_map shapes;
    ms_schedule **schedules; /* (capacity): one per key in `shapes` */
    int capacity;
} shelf;

struct ms_schedule_cache {
    ms_arena *arena;
    shelf listed, outlines;
    long num_actions;
};

static long num_actions_of(const ms_schedule *schedule)
{
    return schedule == NULL || schedule->actions == NULL
               ? 0
               : schedule->first_action[schedule->shape.num_ranks] +
                     num_actions_of(schedule->shorter);
}

bool ms_schedule_cache_is_full(const ms_schedule_cache *cache)
{
    return cache->num_actions >= MS_MOST_ACTIONS / 4;
}

ms_schedule_cache *ms_schedule_cache_open(void)
{
    ms_arena *arena = ms_arena_open();
    ms_schedule_cache *cache = MS_NEW(arena, ms_schedule_cache);
    cache->arena = cache->listed.shapes.arena = cache->outlines.shapes.arena = arena;
    return cache;
}

void ms_schedule_cache_close(ms_schedule_cache *cache)
{
    ms_arena_close(cache->arena);
}

/* A schedule shape without padding bytes, so that its bytes can be hashed. */
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

/* The place of a shape's schedule, NULL if it is not made. */
static ms_schedule **place_of(shelf *on, const ms_schedule_shape *shape)
{
    shape_key key = key_of(shape);
    int num = on->shapes.num, i = ms_map_add(&on->shapes, &key, sizeof key);
    if (i == num) {
        MS_MAKE_ROOM(on->shapes.arena, on->schedules, num, on->capacity, 64);
        on->schedules[i] = NULL;
    }
    return &on->schedules[i];
}

const ms_schedule *ms_schedule_cached(ms_schedule_cache *cache,
                                      const ms_schedule_shape *shape, ms_arena *scratch)
{
    ms_schedule **place = place_of(&cache->listed, shape);
    if (*place == NULL && ms_schedule_cache_is_full(cache))
        return ms_schedule_condense(scratch, shape, MS_LONG_SCHEDULE);
    if (*place == NULL) {
        *place = ms_schedule_condense(cache->arena, shape, MS_LONG_SCHEDULE);
        cache->num_actions += num_actions_of(*place);
    }
    return *place;
}

const ms_schedule *ms_outline_cached(ms_schedule_cache *cache,
                                     const ms_schedule_shape *shape, bool has_edges)
{
    ms_schedule_shape brief = *shape;
    int least;
    if (ms_schedule_period(shape, &least) > 0)
        brief.num_microbatches = least;
    ms_schedule **place = place_of(&cache->outlines, &brief);
    if (*place == NULL) {
        *place = ms_schedule_outline(cache->arena, &brief);
        cache->num_actions += num_actions_of(*place);
    }
    if (has_edges)
        ms_schedule_find_edges(cache->arena, *place);
    return *place;
}
