/* Predictions of published runs, each beside its measurement. */
#ifndef MS_SIM_RUN_PRICES_H
#define MS_SIM_RUN_PRICES_H

#include "sim/validation.h"

/* Keeps the layer programs that runs share. */
typedef struct ms_run_prices ms_run_prices;

ms_run_prices *ms_run_prices_open(void);
/* The run has no reason. Anything but MS_OK: it cannot be predicted. */
ms_status ms_run_price(ms_run_prices *prices, const ms_published_run *run,
                       ms_run_score *out);
/* Settles by memory what a run leaves open or cannot have been, and says so among its
 * defaults. A run without any batch takes the micro-batch that fits, of 1, 2, 4 and so on
 * sequences, as tables of throughput do. Runs that say nothing about their memory and
 * cannot have been as they are written are those that leave recomputation open, of a
 * stack whose runs do it by need, and would not fit their GPUs, which then compute again
 * what takes the least time of all that lets them fit (sim/recompute_fit.h), everything
 * where nothing does; and any other that says nothing about ZeRO, states none or
 * selective recomputation, or nothing, and whose peak is predicted half as large again as
 * its GPUs. These take selective, or else full on as few layers of each chunk as fit;
 * where that does not help and the row says nothing about ZeRO, the same with stage 1.
 * Other runs stay as they are, and so does one that fits with none of this. */
void ms_run_settle(ms_arena *arena, ms_run_prices *prices, ms_published_run *run);
/* Of a run whose peak was measured, and whose stack may keep what it gathered or not: its
 * peak without, and with all of it and one micro-batch more. Of others nothing
 * changes. */
ms_status ms_run_price_range(ms_run_prices *prices, const ms_published_run *run,
                             ms_run_score *score);
/* Coefficients have changed: nothing that was kept holds any more. */
void ms_run_prices_forget(ms_run_prices *prices);
void ms_run_prices_close(ms_run_prices *prices);

/* (predicted - measured) / measured. */
double ms_run_error_frac(double predicted, double measured);

/* Of a run that is not predicted. */
extern const ms_run_score ms_run_unpriced;

#endif
