#include "sim/live_cache.h"

#include <stdint.h>
#include <string.h>

#define NUM_BUCKETS 4096

typedef struct entry {
    const ms_schedule *lists;
    int first_rank, num_ranks;
    const int *distinct; /* (lists->num_chunks): ms_run_distinct of each model chunk */
    ms_rank_live live;   /* live.run is the rank class of the first caller */
    struct entry *next;
} entry;

struct ms_live_cache {
    ms_arena *arena;
    entry *buckets[NUM_BUCKETS];
};

ms_live_cache *ms_live_cache_open(void)
{
    ms_arena *arena = ms_arena_open();
    ms_live_cache *cache = MS_NEW(arena, ms_live_cache);
    cache->arena = arena;
    return cache;
}

void ms_live_cache_close(ms_live_cache *cache)
{
    ms_arena_close(cache->arena);
}

static unsigned bucket_of(const ms_run *run, const ms_schedule *lists,
                          const int *distinct)
{
    uint64_t hash = (uint64_t)(uintptr_t)lists >> 4;
    hash = hash * 31U + (uint64_t)run->first_rank;
    hash = hash * 31U + (uint64_t)run->num_ranks;
    for (int chunk = 0; chunk < lists->num_chunks; chunk++)
        hash = hash * 31U + (uint64_t)distinct[chunk];
    return (unsigned)(hash * 0x9E3779B97F4A7C15U >> 52) % NUM_BUCKETS;
}

static bool is_same(const entry *e, const ms_run *run, const ms_schedule *lists,
                    const int *distinct)
{
    size_t size = (size_t)lists->num_chunks * sizeof *distinct;
    return e->lists == lists && e->first_rank == run->first_rank &&
           e->num_ranks == run->num_ranks && memcmp(e->distinct, distinct, size) == 0;
}

ms_rank_live ms_rank_live_cached(ms_live_cache *cache, const ms_run *run,
                                 const ms_schedule *lists)
{
    ms_arena_mark mark = ms_arena_save(cache->arena);
    int *distinct = MS_NEW_ARRAY(cache->arena, lists->num_chunks, int);
    for (int chunk = 0; chunk < lists->num_chunks; chunk++)
        distinct[chunk] = ms_run_distinct(run, chunk);
    entry **bucket = &cache->buckets[bucket_of(run, lists, distinct)];
    for (entry *e = *bucket; e != NULL; e = e->next) {
        if (!is_same(e, run, lists, distinct))
            continue;
        ms_rank_live live = e->live;
        live.run = run;
        ms_arena_rewind(cache->arena, mark);
        return live;
    }
    entry *e = MS_NEW(cache->arena, entry);
    *e = (entry){.lists = lists,
                 .first_rank = run->first_rank,
                 .num_ranks = run->num_ranks,
                 .distinct = distinct,
                 .next = *bucket};
    e->live =
        ms_rank_live_make(cache->arena, run, lists, run->first_rank, run->num_ranks);
    *bucket = e;
    return e->live;
}
