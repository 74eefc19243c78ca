/* Shared by the runs_fit*.c files. */
#ifndef MS_SIM_RUNS_FIT_PRIV_H
#define MS_SIM_RUNS_FIT_PRIV_H

#include "sim/run_prices.h"
#include "sim/runs_fit.h"

/* Sets it and all figures that it stands for. */
void ms_fit_constant_set(ms_fit_constant *c, double value);

#endif
