/* Times and large numbers of campaigns as people say them. */
#ifndef MS_SIM_PLANNING_CAMPAIGN_TEXT_H
#define MS_SIM_PLANNING_CAMPAIGN_TEXT_H

#include "base/arena.h"

#define MS_DAY_S 86400.0

/* "15.6T" for 1.56e13; `between` number and prefix: " " where a unit follows. */
const char *ms_large_text(ms_arena *arena, double value, const char *between);
/* A time in days, hours or minutes, whatever suits: "71.3 days". */
const char *ms_long_time_text(ms_arena *arena, double seconds);

#endif
