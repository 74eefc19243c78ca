/* What ranks keep of their micro-batches (ms_rank_live), remembered: it depends on a
 * schedule's lists and on which chunks of a rank are alike, which plans of many meshes
 * have in common. */
#ifndef MS_SIM_LIVE_CACHE_H
#define MS_SIM_LIVE_CACHE_H

#include "sim/memory.h"

typedef struct ms_live_cache ms_live_cache;

/* One per thread; close it to release all that it gave out. */
ms_live_cache *ms_live_cache_open(void);
void ms_live_cache_close(ms_live_cache *cache);

/* ms_rank_live_make of all ranks of the run. `lists` stay where they are as long as the
 * cache is used (sim/schedule_cache.h). */
ms_rank_live ms_rank_live_cached(ms_live_cache *cache, const ms_run *run,
                                 const ms_schedule *lists);

#endif
