/* meshsim validate of a table of measured collectives. */
#ifndef MS_CLI_VALIDATE_COLLECTIVES_H
#define MS_CLI_VALIDATE_COLLECTIVES_H

#include "cli/commands.h"
#include "cli/tables.h"
#include "sim/collective_rows.h"

/* Notes of malformed rows. */
void ms_collective_faults_note(const ms_ctx *cx, const ms_collective_rows *rows);
ms_status ms_validate_collectives_command(ms_ctx *cx, const ms_args *args,
                                          const ms_table_file *table);

#endif
