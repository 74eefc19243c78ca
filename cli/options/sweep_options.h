/* Options that ask for the fastest plans of many jobs: models, clusters, numbers of GPUs,
 * sequence lengths and batches, every one with every other. */
#ifndef MS_CLI_OPTIONS_SWEEP_OPTIONS_H
#define MS_CLI_OPTIONS_SWEEP_OPTIONS_H

#include "cli/options/commands.h"
#include "sim/planning/plan_sweep.h"
#include "sim/request/campaign_options.h"
#include "sim/request/memory_options.h"
#include "sim/request/plan_options.h"

typedef struct ms_sweep_options {
    const char *gpus, *models, *clusters, *seqs, *batches, *prices;
    ms_opt_list limit;
    ms_memory_options memory;
    ms_campaign_options campaign;
    ms_plan_options plan;
} ms_sweep_options;

/* Options that fill a ms_sweep_options. */
extern const ms_option ms_sweep_option_table[];

#define MS_NUM_SWEEP_SETS 4
/* The sets of options that fill `options`: its own, memory, campaign, plan. */
void ms_sweep_options_sets(ms_ctx *cx, ms_sweep_options *options,
                           ms_option_set sets[MS_NUM_SWEEP_SETS]);

/* The questions of a sweep, none answered; lives in cx->arena. MS_EINPUT: lists, limits,
 * or files that are wrong. */
ms_status ms_sweep_options_make(ms_ctx *cx, const ms_sweep_options *options,
                                ms_plan_sweep *out);

#endif
