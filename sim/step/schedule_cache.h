/* Cache of pipeline schedules by shape, for one thread. */
#ifndef MS_SIM_STEP_SCHEDULE_CACHE_H
#define MS_SIM_STEP_SCHEDULE_CACHE_H

#include "costmodel/schedule/schedule.h"

typedef struct ms_schedule_cache ms_schedule_cache;
ms_schedule_cache *ms_schedule_cache_open(void);
void ms_schedule_cache_close(ms_schedule_cache *cache);
/* Whether the cache keeps no more schedules: its lists have a quarter of MS_MOST_ACTIONS,
 * about 65 MB. */
bool ms_schedule_cache_is_full(const ms_schedule_cache *cache);
/* The schedule of a shape, condensed if long; made in `scratch` if the cache is full. */
const ms_schedule *ms_schedule_cached(ms_schedule_cache *cache,
                                      const ms_schedule_shape *shape, ms_arena *scratch);
/* The outline of a shape's schedule (ms_schedule_outline), or of a shorter one that keeps
 * as many micro-batches alive and begins and ends alike; on request with `edges`. */
const ms_schedule *ms_outline_cached(ms_schedule_cache *cache,
                                     const ms_schedule_shape *shape, bool has_edges);

#endif
