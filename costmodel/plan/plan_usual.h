/* Command-line defaults of choices that depend on choices before them or on the stack
 * (ms_plan_field.usual). A stack of NULL stands for any. */
#ifndef MS_COSTMODEL_PLAN_PLAN_USUAL_H
#define MS_COSTMODEL_PLAN_PLAN_USUAL_H

#include "costmodel/plan/plan.h"
#include "costmodel/profile/stack.h"

long ms_usual_batch(const ms_plan *plan, const ms_stack *stack);
long ms_usual_schedule(const ms_plan *plan, const ms_stack *stack);
long ms_usual_virtual_stages(const ms_plan *plan, const ms_stack *stack);
long ms_usual_zero(const ms_plan *plan, const ms_stack *stack);
long ms_usual_reshard(const ms_plan *plan, const ms_stack *stack);
long ms_usual_sequence_parallel(const ms_plan *plan, const ms_stack *stack);
long ms_usual_cp_method(const ms_plan *plan, const ms_stack *stack);
long ms_usual_recompute(const ms_plan *plan, const ms_stack *stack);

#endif
