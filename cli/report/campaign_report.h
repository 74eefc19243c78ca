/* A training campaign as text. */
#ifndef MS_CLI_REPORT_CAMPAIGN_REPORT_H
#define MS_CLI_REPORT_CAMPAIGN_REPORT_H

#include "sim/planning/campaign_text.h"

#include <stdio.h>

void ms_campaign_print(FILE *out, ms_arena *arena, const ms_campaign_answer *answer);

#endif
