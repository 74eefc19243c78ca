/* Intervals of published runs: the spread of their errors where nothing was fitted to
 * them, and how many measurements the intervals hold. [13.6] of docs/formulas. */
#ifndef MS_SIM_RUNS_SPREAD_H
#define MS_SIM_RUNS_SPREAD_H

#include "costmodel/error_spread.h"
#include "sim/runs_fit.h"

/* The fold of each run, 0 to MS_SPREAD_FOLDS - 1: all runs of one model on one GPU type
 * of a source together. `fold_of` has an entry per run. */
#define MS_SPREAD_FOLDS 5
void ms_runs_fold(const ms_published_runs *runs, int *fold_of);

/* Scores of every run by constants that were fitted without its fold, but with other runs
 * of its source; the fit of all runs stands afterwards, but for how many sources tell
 * a constant. */
ms_status ms_runs_fit_cross_validate_folds(ms_ctx *cx, ms_runs_fit *fit,
                                           ms_run_score *scores);

/* Intervals around what is predicted of the measurement. Of runs that the spread was made
 * from, it is taken without their source. */
void ms_runs_spread_apply(const ms_published_runs *runs, const ms_error_spread *spread,
                          ms_measurement measurement, ms_run_score *scores);
/* The spread of both kinds of errors, one score per run each. Puts intervals in the
 * scores: of each run without its source, and without its fold but with the rest of its
 * source. How much a wider class weighs is that of 1, 2, 4, 8, 16 sources for which the
 * mean of both interval scores is least. */
ms_error_spread ms_runs_spread_make(ms_arena *arena, const ms_published_runs *runs,
                                    ms_measurement measurement, ms_run_score *new_scores,
                                    ms_run_score *known_scores);

/* Mean over sources of the interval scores of their runs, in logarithms: the width, and
 * how far measurements lie outside, over half of what may (Gneiting and Raftery 2007,
 * equation 43). The least is expected of the true quantiles. Runs without interval are
 * not counted. */
double ms_runs_interval_score(const ms_published_runs *runs, ms_measurement measurement,
                              const ms_run_score *scores);

#endif
