/* meshsim calibrate --from KERNELS.csv: coefficients of products and attention fitted on
 * measured kernels. */
#ifndef MS_CLI_CALIBRATE_KERNELS_H
#define MS_CLI_CALIBRATE_KERNELS_H

#include "cli/commands.h"
#include "cli/tables.h"

ms_status ms_calibrate_from_kernels(ms_ctx *cx, const ms_args *args,
                                    const ms_table_file *table);

#endif
