/* meshsim validate of a table of measured collectives. */
#ifndef MS_CLI_VALIDATE_COLLECTIVES_H
#define MS_CLI_VALIDATE_COLLECTIVES_H

#include "cli/commands.h"

ms_status ms_validate_collectives_command(ms_ctx *cx, const ms_args *args,
                                          const char *path);

#endif
