/* `meshsim run --replay`: ranks of a plan execute alone, one after the other. */
#ifndef MS_CLI_CMD_RUN_REPLAY_H
#define MS_CLI_CMD_RUN_REPLAY_H

#include "cli/cmd/run_backend.h"
#include "cli/options/commands.h"
#include "cli/report/replay_report.h"

/* A run that is prepared: legal plan, predicted, with the options of the runner. */
typedef struct ms_run_prepared {
    const ms_args *args;
    const ms_run_flags *flags;
    const ms_plan *plan;
    const ms_planned *planned;
    const ms_prediction *prediction;
    const ms_world *world;
    const ms_runner_options *how;
    ms_cuda_gemm_choices *gemms; /* NULL: none */
    const ms_run_choice *choice;
} ms_run_prepared;

/* Refuses flags that a replay cannot heed, and --replay texts that are malformed. */
ms_status ms_run_replay_check(ms_ctx *cx, const ms_run_flags *flags);

/* Replays the ranks that flags->replay names and prints the report. MS_EINPUT: there is no
 * such rank. MS_ENOFIT: the memory of this machine does not hold a rank. */
ms_status ms_run_replay(ms_ctx *cx, const ms_run_prepared *run);

#endif
