/* Cache of pipeline schedules by shape, for one thread. */
#ifndef MS_SIM_STEP_SCHEDULE_CACHE_H
#define MS_SIM_STEP_SCHEDULE_CACHE_H

#include "costmodel/schedule/schedule.h"

typedef struct ms_schedule_cache ms_schedule_cache;
ms_schedule_cache *ms_schedule_cache_open(void);
void ms_schedule_cache_close(ms_schedule_cache *cache);
/* Whether the cache keeps no more schedules: it has twice MS_MOST_ACTIONS. */
bool ms_schedule_cache_is_full(const ms_schedule_cache *cache);
/* The schedule of a shape, condensed if long; made in `scratch` if the cache is full. */
const ms_schedule *ms_schedule_cached(ms_schedule_cache *cache,
                                      const ms_schedule_shape *shape, ms_arena *scratch);
/* The schedule of a shape, or a shorter one that keeps as many micro-batches alive. */
const ms_schedule *ms_live_cached(ms_schedule_cache *cache,
                                  const ms_schedule_shape *shape, ms_arena *scratch);

#endif
