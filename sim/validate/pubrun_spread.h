/* Prediction intervals of published runs: the spread of their errors under constants that
 * were not fitted to them, and how many measurements the intervals contain
 * (docs/formulas, [13.6]). */
#ifndef MS_SIM_VALIDATE_PUBRUN_SPREAD_H
#define MS_SIM_VALIDATE_PUBRUN_SPREAD_H

#include "costmodel/calibrate/error_spread.h"
#include "sim/validate/pubrun_fit.h"

/* Assigns each run a fold, 0 to MS_SPREAD_FOLDS - 1: all runs of one model on one GPU
 * type from one source share a fold. `fold_of` has an entry per run. */
#define MS_SPREAD_FOLDS 5
void ms_pubruns_fold(const ms_pubruns *runs, int *fold_of);

/* Scores every run by constants that were fitted without its fold, but with other runs of
 * its source. Afterwards the constants are those before the call, but for num_sources,
 * which then counts folds. */
ms_status ms_pubruns_fit_cross_validate_folds(ms_ctx *cx, ms_pubruns_fit *fit,
                                              ms_pubrun_score *scores);

/* Sets in each score the interval of the measurement around its prediction, and the
 * peak_rank_frac of a peak. A run that the spread was made from gets the spread of the
 * other sources only. */
void ms_pubruns_spread_apply(const ms_pubruns *runs, const ms_error_spread *spread,
                             ms_measurement measurement, ms_pubrun_score *scores);
/* Makes the spread of the errors of both scores of each run, and sets intervals in them:
 * in new_scores by the spread of other sources, in known_scores by that of other folds,
 * which have the rest of the run's source. The next wider class of runs counts as 1, 2,
 * 4, 8 or 16 sources, whichever gives the least sum of both interval scores. */
ms_error_spread ms_pubruns_spread_make(ms_arena *arena, const ms_pubruns *runs,
                                       ms_measurement measurement,
                                       ms_pubrun_score *new_scores,
                                       ms_pubrun_score *known_scores);

/* Mean over sources of the mean score of their runs' intervals, in logarithms: the width;
 * if the measurement is outside, plus its distance / half of the share that may lie
 * outside (Gneiting and Raftery 2007, equation 43). The true quantiles have the least
 * expected score. Runs without an interval do not count; NaN if none has one. */
double ms_pubruns_interval_score(const ms_pubruns *runs, ms_measurement measurement,
                                 const ms_pubrun_score *scores);

#endif
