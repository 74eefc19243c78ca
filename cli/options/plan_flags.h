/* What the table of plan flags shares with those who fill the plan. */
#ifndef MS_CLI_OPTIONS_PLAN_FLAGS_H
#define MS_CLI_OPTIONS_PLAN_FLAGS_H

#include "cli/options/options.h"

#define MS_MAX_GPUS                                                                      \
    16777216 /* 2^24; products of axes are exact in a double far beyond it */

#endif
