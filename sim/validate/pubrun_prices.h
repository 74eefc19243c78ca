/* Predictions of published runs, each scored against its measurement. */
#ifndef MS_SIM_VALIDATE_PUBRUN_PRICES_H
#define MS_SIM_VALIDATE_PUBRUN_PRICES_H

#include "sim/validate/validation.h"

/* Cache of the layer programs that published runs share. */
typedef struct ms_pubrun_prices ms_pubrun_prices;

ms_pubrun_prices *ms_pubrun_prices_open(void);
/* Predicts a run whose `reason` is NULL. Any status but MS_OK means that the run cannot
 * be predicted. */
ms_status ms_pubrun_price(ms_pubrun_prices *prices, const ms_pubrun *run,
                          ms_pubrun_score *out);
/* Determines by GPU memory the values that a run leaves open or cannot have had, and
 * notes them in its `defaults`. (1) A run without a micro-batch takes the largest of 1,
 * 2, 4, ... sequences that fits, as tables of throughput do. (2) If a run leaves
 * recomputation open, its stack recomputes by need, and it does not fit, it recomputes
 * the cheapest subset that fits (sim/step/recompute_fit.h), or everything. (3) If a run
 * states no ZeRO stage, recomputes nothing or selectively, and has a predicted peak of
 * more than 1.5 times its GPU's memory, it takes selective, else full recomputation of as
 * few layers of each chunk as fit. If (2) or (3) finds nothing that fits, ZeRO stage 1 is
 * tried too where the row states no stage. Other runs, those with a measured peak, and
 * those that still do not fit keep their values. */
void ms_pubrun_fill_batch(ms_arena *arena, ms_pubrun_prices *prices, ms_pubrun *run);
/* Sets peak_low_bytes and peak_high_bytes of a run whose peak was measured and whose
 * stack may or may not save all-gathered inputs: the peak if it saves none, and if it
 * saves all and has one more micro-batch in flight. Leaves other scores unchanged. */
ms_status ms_pubrun_price_range(ms_pubrun_prices *prices, const ms_pubrun *run,
                                ms_pubrun_score *score);
/* Empties the cache. To be called whenever coefficients of profiles have changed. */
void ms_pubrun_prices_forget(ms_pubrun_prices *prices);
void ms_pubrun_prices_close(ms_pubrun_prices *prices);

/* Relative error of a prediction: (predicted - measured) / measured. */
double ms_pubrun_error_frac(double predicted, double measured);

/* Score of a run that is not predicted. */
extern const ms_pubrun_score ms_pubrun_unpriced;

#endif
