/* Options of meshsim whatif: a job, or a plan to keep, and how much to change. */
#ifndef MS_CLI_OPTIONS_WHATIF_OPTIONS_H
#define MS_CLI_OPTIONS_WHATIF_OPTIONS_H

#include "cli/options/commands.h"
#include "sim/planning/what_if.h"
#include "sim/request/campaign_options.h"
#include "sim/request/memory_options.h"
#include "sim/request/plan_options.h"

typedef struct ms_whatif_options {
    const char *change; /* "20%"; NULL: the default */
    bool all, csv;
    ms_opt_list limit;
    ms_memory_options memory;
    ms_campaign_options campaign;
    ms_plan_options plan;
} ms_whatif_options;

/* Options that fill a ms_whatif_options. */
extern const ms_option ms_whatif_option_table[];

#define MS_NUM_WHATIF_SETS 4
/* The sets of options that fill `options`: its own, memory, campaign, plan. */
void ms_whatif_options_sets(ms_ctx *cx, ms_whatif_options *options,
                            ms_option_set sets[MS_NUM_WHATIF_SETS]);

/* The question that the options ask; lives in cx->arena. MS_EINPUT: bad values, limits or
 * files. */
ms_status ms_whatif_options_make(ms_ctx *cx, ms_whatif_options *options,
                                 ms_what_if_question *out);

#endif
