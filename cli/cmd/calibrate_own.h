/* meshsim calibrate --from-run RUNS.csv: coefficients of a stack and a profile corrected
 * by a user's own measured runs. */
#ifndef MS_CLI_CMD_CALIBRATE_OWN_H
#define MS_CLI_CMD_CALIBRATE_OWN_H

#include "cli/options/commands.h"

typedef struct ms_calibrate_own {
    const char *runs; /* path of the table of own runs; NULL: not this command */
    const char *profile, *stack; /* files to correct; NULL: those of the rows */
    ms_opt_integer fit_rows;     /* runs that each fit of --holdout sees; 0: see below */
    const char *write_profile, *write_stack; /* output files; NULL: none */
} ms_calibrate_own;

extern const ms_option ms_calibrate_own_table[];

/* Corrects the coefficients by the list of constants `constants` (NULL: own-runs) and
 * reports what moved; `holdout`: also errors of runs left out of the fits, each layout in
 * turn, or all but options->fit_rows runs. MS_EINPUT if no run can be predicted, or if
 * files are to be written and the runs are of several stacks or profiles. */
ms_status ms_calibrate_from_own(ms_ctx *cx, const ms_args *args,
                                const ms_calibrate_own *options, const char *constants,
                                bool holdout);

#endif
