/* Runs gnuplot on a script. */
#ifndef MS_PLOTS_GNUPLOT_H
#define MS_PLOTS_GNUPLOT_H

#include "base/diag.h"

#include <stdbool.h>

/* `gnuplot -d -e "output=''" script`, the first gnuplot of PATH, with the descriptor
 * `out` as its standard output. `*found` is false, and nothing is written, when there is
 * none. MS_EIO with gnuplot's own message when it fails; what it wrote until then is
 * worthless. */
ms_status ms_gnuplot_run(ms_ctx *cx, const char *script, int out, bool *found);

#endif
