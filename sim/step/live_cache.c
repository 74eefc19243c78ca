#include "sim/step/live_cache.h"

#include "base/map.h"

struct ms_live_cache {
    ms_map ranks;
    ms_rank_live *lives; /* cached results; the pointer `run` in them is not used */
    int capacity;
};

ms_live_cache *ms_live_cache_open(void)
{
    ms_arena *arena = ms_arena_open();
    ms_live_cache *cache = MS_NEW(arena, ms_live_cache);
    cache->ranks.arena = arena;
    return cache;
}

void ms_live_cache_close(ms_live_cache *cache)
{
    ms_arena_close(cache->ranks.arena);
}

ms_rank_live ms_rank_live_cached(ms_live_cache *cache, const ms_rank_class *run,
                                 const ms_schedule *lists)
{
    ms_arena *arena = cache->ranks.arena;
    ms_arena_mark mark = ms_arena_save(arena);
    intptr_t *key = MS_NEW_ARRAY(arena, 3 + lists->num_chunks, intptr_t);
    size_t size = (size_t)(3 + lists->num_chunks) * sizeof *key;
    key[0] = (intptr_t)lists;
    key[1] = run->first_rank;
    key[2] = run->num_ranks;
    for (int chunk = 0; chunk < lists->num_chunks; chunk++)
        key[3 + chunk] = ms_rank_class_distinct(run, chunk);
    int i = ms_map_find(&cache->ranks, key, size);
    if (i >= 0) {
        ms_arena_rewind(arena, mark);
    } else {
        MS_MAKE_ROOM(arena, cache->lives, cache->ranks.num, cache->capacity, 64);
        i = ms_map_add(&cache->ranks, key, size);
        cache->lives[i] =
            ms_rank_live_make(arena, run, lists, run->first_rank, run->num_ranks);
    }
    ms_rank_live live = cache->lives[i];
    live.run = run;
    return live;
}
