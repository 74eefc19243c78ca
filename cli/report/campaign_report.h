/* A training campaign as text and JSON. */
#ifndef MS_CLI_REPORT_CAMPAIGN_REPORT_H
#define MS_CLI_REPORT_CAMPAIGN_REPORT_H

#include "base/json.h"
#include "cli/options/campaign_options.h"

/* "15.6T" for 1.56e13; `between` stands between number and prefix: " " before a unit. */
const char *ms_large_text(ms_arena *arena, double value, const char *between);
/* "54.2 days", "10.0 min": the largest unit of which there are two. */
const char *ms_long_time_text(ms_arena *arena, double seconds);

void ms_campaign_print(FILE *out, ms_arena *arena, const ms_campaign_answer *answer);
/* Writes the member "campaign" into an open object. */
void ms_campaign_write_field(ms_jout *out, const ms_campaign_answer *answer);

#endif
