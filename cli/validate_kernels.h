/* meshsim validate of a table of measured kernels. */
#ifndef MS_CLI_VALIDATE_KERNELS_H
#define MS_CLI_VALIDATE_KERNELS_H

#include "cli/commands.h"

ms_status ms_validate_kernels_command(ms_ctx *cx, const ms_args *args, const char *path);

#endif
