/* Runs gnuplot on a script. */
#ifndef MS_PLOTS_GNUPLOT_H
#define MS_PLOTS_GNUPLOT_H

#include "base/diag.h"

#include <stdbool.h>

/* Runs `gnuplot -d -e "output=''" script` with standard output to `out`. *found is false
 * if PATH has no gnuplot. MS_EIO with gnuplot's message if it fails; its output is then
 * incomplete. */
ms_status ms_gnuplot_run(ms_ctx *cx, const char *script, int out, bool *found);

#endif
