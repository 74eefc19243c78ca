/* meshsim calibrate --from RUNS.csv: constants fitted on published runs. */
#ifndef MS_CLI_CMD_CALIBRATE_RUNS_H
#define MS_CLI_CMD_CALIBRATE_RUNS_H

#include "cli/options/commands.h"
#include "cli/options/tables.h"
#include "sim/validate/pubrun.h"

typedef struct ms_calibrate_runs {
    const char *runs;      /* file of published runs */
    const char *constants; /* name in configs/fits/, or a file */
    /* errors of each source by constants that were fitted without it, too */
    bool holdout;
    /* file that the spread of held-out errors is written to; NULL: none */
    const char *spread;
} ms_calibrate_runs;

/* Notes of malformed rows. */
void ms_run_faults_note(const ms_ctx *cx, const ms_pubruns *runs);
/* `table` is the file that options->runs names. */
ms_status ms_calibrate_from_runs(ms_ctx *cx, const ms_args *args,
                                 const ms_calibrate_runs *options,
                                 const ms_table_file *table);

#endif
