/* meshsim calibrate --from COLLECTIVES.csv: coefficients of collectives fitted on measured ones. */
#ifndef MS_CLI_CALIBRATE_COLLECTIVES_H
#define MS_CLI_CALIBRATE_COLLECTIVES_H

#include "cli/commands.h"
#include "cli/tables.h"

/* With `holdout` also errors of each system by coefficients that were fitted without it. */
ms_status ms_calibrate_from_collectives(ms_ctx *cx, const ms_args *args,
                                        const ms_table_file *table, bool holdout);

#endif
