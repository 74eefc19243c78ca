/* meshsim validate --plot FILE: predicted against measured, as a picture. */
#ifndef MS_CLI_CMD_VALIDATE_PLOT_H
#define MS_CLI_CMD_VALIDATE_PLOT_H

#include "cli/cmd/plot_files.h"
#include "cli/options/commands.h"
#include "sim/validate/validation.h"

/* Fills `out` for the picture `path`. MS_EINPUT when its ending is no format, or it would
 * replace `runs` or the tables of -o; MS_EIO when it cannot be written. */
ms_status ms_validate_plot_open(ms_ctx *cx, const ms_args *args, const char *path,
                                const char *runs, ms_plot_target *out);
/* Renders the picture (ms_plot_render); prints only a note when no run was predicted. */
ms_status ms_validate_plot_write(ms_ctx *cx, const ms_plot_target *target,
                                 const ms_validation *validation);

#endif
