/* What the table of plan flags shares with those who fill the plan, and with other tables. */
#ifndef MS_CLI_PLAN_FLAGS_H
#define MS_CLI_PLAN_FLAGS_H

#include "cli/options.h"

#define MS_MAX_GPUS                                                                      \
    16777216 /* 2^24; products of axes are exact in a double far beyond it */

#define MS_OPT_MEMORY_LIMIT(type, member)                                                \
    {                                                                                    \
        .kind = MS_OPTION_QUANTITY, .name = "--memory-limit",                            \
        .offset = offsetof(type, member), .value = "X", .unit = MS_UNIT_COUNT,           \
        .high = 4194304, .above_low = true,                                              \
        .help = "zb-auto: micro-batches in flight, as a multiple of 1f1b's peak on "     \
                "rank 0 (default 2)"                                                     \
    }

#endif
