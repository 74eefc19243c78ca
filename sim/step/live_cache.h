/* Cache of ms_rank_live, which plans of many meshes have in common. */
#ifndef MS_SIM_STEP_LIVE_CACHE_H
#define MS_SIM_STEP_LIVE_CACHE_H

#include "sim/step/rank_memory.h"

typedef struct ms_live_cache ms_live_cache;

/* Opens a cache for one thread. Closing it frees everything that it returned. */
ms_live_cache *ms_live_cache_open(void);
void ms_live_cache_close(ms_live_cache *cache);

/* ms_rank_live_make for all ranks of the rank class, through the cache. `lists` must
 * stay at their address while the cache is in use (sim/step/schedule_cache.h). */
ms_rank_live ms_rank_live_cached(ms_live_cache *cache, const ms_rank_class *run,
                                 const ms_schedule *lists);

#endif
