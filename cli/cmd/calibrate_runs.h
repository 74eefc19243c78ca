/* meshsim calibrate --from FILE.csv: constants fitted to published measurements. */
#ifndef MS_CLI_CMD_CALIBRATE_RUNS_H
#define MS_CLI_CMD_CALIBRATE_RUNS_H

#include "cli/options/commands.h"
#include "sim/validate/pubrun.h"

typedef struct ms_calibrate_runs {
    const char *runs;      /* path of the table of published runs */
    const char *constants; /* list of constants to fit: name in configs/fits/, or file */
    bool holdout;        /* report each source's errors by constants fitted without it */
    const char *spread;  /* output file of the spread of held-out errors; NULL: none */
    const char *ranking; /* output file of the spread between layouts; NULL: none */
} ms_calibrate_runs;

void ms_run_faults_note(const ms_ctx *cx, const ms_pubruns *runs);
/* Fits what the table runs->runs has, by its kind: constants to runs, coefficients of
 * profiles to collectives or kernels; writes the result. MS_EINPUT for options that are
 * not for this kind. */
ms_status ms_calibrate_from_table(ms_ctx *cx, const ms_args *args,
                                  const ms_calibrate_runs *runs);

#endif
