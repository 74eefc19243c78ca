/* Functions for advice on plans that the advise*.c files share. */
#ifndef MS_SIM_EXPLAIN_ADVISE_PRIV_H
#define MS_SIM_EXPLAIN_ADVISE_PRIV_H

#include "sim/explain/advise.h"

/* Fills advice->measure: the peak of a change that would be faster than all plans that
 * fit; else the coefficient that turns the choice between the fastest plan with at most one
 * change and the given one, or else the next fastest. */
ms_status ms_advise_measure(ms_ctx *cx, const ms_workload *workload, ms_advice *advice);

#endif
