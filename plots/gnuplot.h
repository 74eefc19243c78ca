/* Runs gnuplot on a script. */
#ifndef MS_PLOTS_GNUPLOT_H
#define MS_PLOTS_GNUPLOT_H

#include "base/diag.h"

#include <stdbool.h>

/* Runs `gnuplot -d -e "output=''" script` with standard output to `out`; *found: PATH has
 * gnuplot. MS_EIO, with its message, if it fails; output is then incomplete. */
ms_status ms_gnuplot_run(ms_ctx *cx, const char *script, int out, bool *found);

#endif
