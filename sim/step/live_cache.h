/* Cache of ms_rank_live, the micro-batches alive on each rank, which many plans share. */
#ifndef MS_SIM_STEP_LIVE_CACHE_H
#define MS_SIM_STEP_LIVE_CACHE_H

#include "sim/step/rank_memory.h"

typedef struct ms_live_cache ms_live_cache;

/* Opens a cache for one thread. ms_live_cache_close frees all that it returned. */
ms_live_cache *ms_live_cache_open(void);
void ms_live_cache_close(ms_live_cache *cache);

/* ms_rank_live_make for all ranks of a rank class, from the cache if known. The schedule
 * `lists` must keep its address while the cache is open (sim/step/schedule_cache.h). */
ms_rank_live ms_rank_live_cached(ms_live_cache *cache, const ms_rank_class *run,
                                 const ms_schedule *lists);

#endif
