/* Cache of schedules and their counts of live micro-batches by shape, shared by all plans
 * of a thread. */
#ifndef MS_SIM_STEP_SCHEDULE_CACHE_H
#define MS_SIM_STEP_SCHEDULE_CACHE_H

#include "costmodel/schedule/schedule.h"

typedef struct ms_schedule_cache ms_schedule_cache;
ms_schedule_cache *ms_schedule_cache_open(void);
void ms_schedule_cache_close(ms_schedule_cache *cache);
const ms_schedule *ms_schedule_cached(ms_schedule_cache *cache,
                                      const ms_schedule_shape *shape);
/* A possibly shorter schedule with the same counts of live micro-batches on every rank,
 * which more micro-batches do not change. */
const ms_schedule *ms_live_cached(ms_schedule_cache *cache,
                                  const ms_schedule_shape *shape);

#endif
