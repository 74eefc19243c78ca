/* Answers the questions of a sweep side by side, with progress and a file of answers. */
#ifndef MS_CLI_OPTIONS_SWEEP_ANSWER_H
#define MS_CLI_OPTIONS_SWEEP_ANSWER_H

#include "cli/options/commands.h"
#include "sim/planning/plan_sweep.h"

/* Answers the sweep's questions and shows on a terminal how many are answered. `state`:
 * file of answers that are taken from it and added to it; NULL: none. MS_EINTERRUPTED:
 * answers are missing, and say "not searched" as their reason; MS_EIO, MS_EINPUT: the file. */
ms_status ms_sweep_answer(ms_ctx *cx, const ms_args *args, const char *state,
                          ms_plan_sweep *sweep);

#endif
