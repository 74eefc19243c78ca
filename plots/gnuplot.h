/* Runs gnuplot on a script. */
#ifndef MS_PLOTS_GNUPLOT_H
#define MS_PLOTS_GNUPLOT_H

#include "base/diag.h"

#include <stdbool.h>

/* Runs `gnuplot -d -e "output=''" script` with the first gnuplot in PATH and the
 * descriptor `out` as its standard output. *found is false, and nothing is written, if
 * there is no gnuplot. MS_EIO with the message of gnuplot if it fails; its output is
 * then incomplete. */
ms_status ms_gnuplot_run(ms_ctx *cx, const char *script, int out, bool *found);

#endif
