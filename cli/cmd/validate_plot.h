/* meshsim validate --plot FILE: predicted against measured, as a picture. */
#ifndef MS_CLI_CMD_VALIDATE_PLOT_H
#define MS_CLI_CMD_VALIDATE_PLOT_H

#include "cli/cmd/plot_files.h"
#include "cli/options/commands.h"
#include "sim/validate/validation.h"

/* Before the work: the picture has an ending that is known, can be written, and replaces
 * neither `runs` nor the tables. */
ms_status ms_validate_plot_open(ms_ctx *cx, const ms_args *args, const char *path,
                                const char *runs, ms_plot_target *out);
/* As ms_plot_render. A note instead where nothing was predicted. */
ms_status ms_validate_plot_write(ms_ctx *cx, const ms_plot_target *target,
                                 const ms_validation *validation);

#endif
