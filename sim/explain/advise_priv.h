/* Functions for advice on plans that the advise*.c files share. */
#ifndef MS_SIM_EXPLAIN_ADVISE_PRIV_H
#define MS_SIM_EXPLAIN_ADVISE_PRIV_H

#include "sim/explain/advise.h"

/* Fills advice->measure for the choice between the fastest plan that fits and the given
 * one; if no coefficient turns it, for the choice between the two fastest plans. */
ms_status ms_advise_measure(ms_ctx *cx, const ms_workload *workload, ms_advice *advice);

#endif
