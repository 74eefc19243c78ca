/* Times and large numbers of campaigns as people say them; campaigns as JSON. */
#ifndef MS_SIM_PLANNING_CAMPAIGN_TEXT_H
#define MS_SIM_PLANNING_CAMPAIGN_TEXT_H

#include "base/json.h"
#include "base/units.h"
#include "sim/planning/campaign_of_plan.h"

#define MS_DAY_S 86400.0

/* "15.6T" for 1.56e13; `between` number and prefix: " " where a unit follows. */
const char *ms_large_text(ms_arena *arena, double value, const char *between);
/* A time in days, hours or minutes, whatever suits: "71.3 days". */
const char *ms_long_time_text(ms_arena *arena, double seconds);

/* Whether the deadline is kept: by the estimate, and where its 90 % interval says
 * otherwise, by an end of that: "kept", "kept at the estimate, missed at the upper end of
 * the interval (109.9 days)", "exceeded by 3.0 days". NULL without a deadline. */
const char *ms_deadline_text(ms_arena *arena, const ms_campaign_answer *answer);
/* Whether the budget is kept, likewise; NULL without one, or without a price. */
const char *ms_budget_text(ms_arena *arena, const ms_campaign_answer *answer);
/* The limit that a campaign breaks, and by how much: "late by 3.0 days", "over budget by
 * 2.1k", "makes no progress"; NULL: none. */
const char *ms_broken_limit_text(ms_arena *arena, const ms_campaign_answer *answer);

/* Writes the member "campaign" into an open object. */
void ms_campaign_write_field(ms_jout *out, const ms_campaign_answer *answer);

/* A value with its unit: "3.35 TB/s", "0.835"; counts of a million or more: "900G". */
const char *ms_quantity_text(ms_arena *arena, double value, ms_unit unit);

#endif
