/* A plan written as the flags that give it, to be pasted. */
#ifndef MS_CLI_OPTIONS_PLAN_COMMAND_H
#define MS_CLI_OPTIONS_PLAN_COMMAND_H

#include "cli/options/commands.h"
#include "sim/search/shortfall.h"

/* "--model 70b --gpus 512 --pp 4 --dp-shard 16 --tp 8 --zero 1 --recompute none": with
 * them ms_plan_from_options gives this plan again, but for layers_per_stage, which must
 * be the default split, the data types of states, which have no flags, and
 * reshard_after_forward below zero 3, where it has no effect. */
char *ms_plan_command_text(ms_arena *arena, const ms_plan *plan);

/* Opens what the plan names; MS_EINPUT when the plan is not legal for it. The workload is
 * closed on failure. */
ms_status ms_plan_open_workload(ms_ctx *cx, const ms_plan *plan, ms_workload **out);

/* ms_recompute_fit, with a note of the budget that it found. */
ms_status ms_plan_fit_recompute(ms_ctx *cx, ms_workload *workload, ms_plan *plan);

/* MS_OK when the predicted plan fits; otherwise `out` is what is missing and what would
 * fit, recorded as an error: MS_ENOFIT. */
ms_status ms_plan_check_fits(ms_ctx *cx, const ms_args *args, ms_workload *workload,
                             const ms_prediction *prediction, const ms_plan *plan,
                             ms_shortfall *out);

/* MS_EINPUT when the plan has more GPUs than its cluster. */
ms_status ms_plan_check_cluster(ms_ctx *cx, const ms_plan *plan,
                                const ms_cluster *cluster);

#endif
