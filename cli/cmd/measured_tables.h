/* meshsim validate and calibrate --from with tables of measured collectives and
 * kernels. */
#ifndef MS_CLI_CMD_MEASURED_TABLES_H
#define MS_CLI_CMD_MEASURED_TABLES_H

#include "cli/options/commands.h"
#include "cli/options/tables.h"

/* Writes predictions beside the measured times of `table`. */
ms_status ms_validate_measured(ms_ctx *cx, const ms_args *args,
                               const ms_table_file *table);
/* Fits cost coefficients to the times in `table` and writes them; with `holdout` (only
 * collectives) also each system's errors by coefficients fitted to all others. */
ms_status ms_calibrate_from_measured(ms_ctx *cx, const ms_args *args,
                                     const ms_table_file *table, bool holdout);

#endif
