/* Cache of schedules by shape: a hash table. */
#include "sim/schedule_cache.h"

#define NUM_BUCKETS 256

typedef struct entry {
    ms_schedule_shape shape;
    const ms_schedule *schedule;
    struct entry *next;
} entry;

struct ms_schedule_cache {
    ms_arena *arena;
    entry *buckets[NUM_BUCKETS];
};

ms_schedule_cache *ms_schedule_cache_open(void)
{
    ms_arena *arena = ms_arena_open();
    ms_schedule_cache *cache = MS_NEW(arena, ms_schedule_cache);
    cache->arena = arena;
    return cache;
}

void ms_schedule_cache_close(ms_schedule_cache *cache)
{
    ms_arena_close(cache->arena);
}

static unsigned hash_shape(const ms_schedule_shape *shape)
{
    unsigned hash = (unsigned)shape->kind;
    hash = hash * 31U + (unsigned)shape->num_ranks;
    hash = hash * 31U + (unsigned)shape->num_microbatches;
    hash = hash * 31U + (unsigned)shape->virtual_stages;
    hash = hash * 31U + (unsigned)shape->group;
    hash = hash * 31U + (unsigned)(8.0 * shape->memory_limit);
    return (hash * 2654435761U >> 16) % NUM_BUCKETS;
}

static bool same_times(const ms_schedule_times *a, const ms_schedule_times *b)
{
    return a->forward == b->forward && a->backward_input == b->backward_input &&
           a->backward_weight == b->backward_weight && a->send == b->send;
}

static bool same_shape(const ms_schedule_shape *a, const ms_schedule_shape *b)
{
    return a->kind == b->kind && a->num_ranks == b->num_ranks &&
           a->num_microbatches == b->num_microbatches &&
           a->virtual_stages == b->virtual_stages && a->group == b->group &&
           a->memory_limit == b->memory_limit && a->weight_share == b->weight_share &&
           a->head_share == b->head_share && same_times(&a->times, &b->times) &&
           a->early_release == b->early_release && a->table == b->table;
}

const ms_schedule *ms_schedule_cached(ms_schedule_cache *cache,
                                      const ms_schedule_shape *shape)
{
    unsigned bucket = hash_shape(shape);
    for (entry *e = cache->buckets[bucket]; e != NULL; e = e->next)
        if (same_shape(&e->shape, shape))
            return e->schedule;
    entry *e = MS_NEW(cache->arena, entry);
    e->shape = *shape;
    e->schedule = ms_schedule_make(cache->arena, shape);
    e->next = cache->buckets[bucket];
    cache->buckets[bucket] = e;
    return e->schedule;
}

/* Number of micro-batches after which a schedule only repeats itself: schedules of 4p
 * micro-batches (2p: 1F1B) save as many activations, begin and end like longer ones.
 * With groups of p micro-batches the warm-up of at most (v + 1) p forwards ends after
 * two groups. GPipe and looped BFS save all activations, and are short. Whether orders
 * that are built from durations repeat depends on the durations, so they are never
 * cut. */
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
