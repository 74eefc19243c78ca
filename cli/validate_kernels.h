/* meshsim validate of a table of measured kernels. */
#ifndef MS_CLI_VALIDATE_KERNELS_H
#define MS_CLI_VALIDATE_KERNELS_H

#include "cli/commands.h"
#include "cli/tables.h"
#include "sim/kernel_rows.h"

/* Notes of malformed rows. */
void ms_kernel_faults_note(const ms_ctx *cx, const ms_kernel_rows *rows);
ms_status ms_validate_kernels_command(ms_ctx *cx, const ms_args *args,
                                      const ms_table_file *table);

#endif
