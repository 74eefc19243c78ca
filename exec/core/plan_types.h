/* Types of a plan (precision.params, grads, optimizer, comm, master) in a run. */
#ifndef MS_EXEC_CORE_PLAN_TYPES_H
#define MS_EXEC_CORE_PLAN_TYPES_H

#include "base/diag.h"
#include "costmodel/plan/plan.h"
#include "exec/core/scalar.h"

/* The precision of a run in `type` with the types that the plan states, and what follows
 * from them by ms_stack_set_types and ms_stack_set_optimizer: the memory model's own rules,
 * so that a run stores what is predicted for its stack, meshsim. Gradients that are sent in
 * 8 or 4 bits are quantized from the type of computation. */
ms_precision ms_precision_of_plan(ms_real_type type, const ms_plan *plan);

/* Whether a run with these types rounds more than one in `type` alone. */
bool ms_plan_narrows(ms_real_type type, const ms_plan *plan);

/* MS_EINPUT, with the flag: types that no run has (fp8), or none in `type`. */
ms_status ms_plan_check_run_types(ms_ctx *cx, ms_real_type type, const ms_plan *plan);

#endif
