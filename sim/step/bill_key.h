/* Key under which a plan's priced programs (ms_bill) are cached. Its field holds_gathers:
 * activations gathered over tp for a GEMM stay in memory until the backward, although the
 * backward gathers them again. So it is in stacks with holds_gathers_alone if the host
 * runs ahead of the device (docs/formulas 7.2). */
#ifndef MS_SIM_STEP_BILL_KEY_H
#define MS_SIM_STEP_BILL_KEY_H

#include "sim/step/workload.h"

/* The key of a plan's priced programs; it does not depend on the order of mesh axes. */
ms_bill_key ms_plan_bill_key(ms_workload *workload, const ms_plan *plan);
/* Positions of a sequence of `tokens` tokens whose pieces of tp and cp are whole, at most
 * the plan's sequence length. */
int ms_padded_positions(const ms_workload *workload, long tp, long cp, double tokens);

#endif
