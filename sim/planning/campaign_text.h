/* Times and large numbers of campaigns as people say them. */
#ifndef MS_SIM_PLANNING_CAMPAIGN_TEXT_H
#define MS_SIM_PLANNING_CAMPAIGN_TEXT_H

#include "base/arena.h"
#include "base/units.h"

#define MS_DAY_S 86400.0

/* "15.6T" for 1.56e13; `between` number and prefix: " " where a unit follows. */
const char *ms_large_text(ms_arena *arena, double value, const char *between);
/* A time in days, hours or minutes, whatever suits: "71.3 days". */
const char *ms_long_time_text(ms_arena *arena, double seconds);

/* A value with its unit: "3.35 TB/s", "0.835"; counts of a million or more: "900G". */
const char *ms_quantity_text(ms_arena *arena, double value, ms_unit unit);

#endif
