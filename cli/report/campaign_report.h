/* A training campaign as text and JSON. */
#ifndef MS_CLI_REPORT_CAMPAIGN_REPORT_H
#define MS_CLI_REPORT_CAMPAIGN_REPORT_H

#include "base/json.h"
#include "cli/options/campaign_options.h"

void ms_campaign_print(FILE *out, ms_arena *arena, const ms_campaign_answer *answer);
/* Writes the member "campaign" into an open object. */
void ms_campaign_write_field(ms_jout *out, const ms_campaign_answer *answer);

#endif
