/* A plan's choices that change numbers of its stack: types, optimizer, offload. */
#ifndef MS_COSTMODEL_PLAN_STACK_CHOICES_H
#define MS_COSTMODEL_PLAN_STACK_CHOICES_H

#include "costmodel/plan/plan.h"
#include "costmodel/profile/stack.h"

/* The stack as a plan runs it: adapted to the compute type (ms_stack_adapt), with the
 * plan's own choices in place of the stack's numbers. */
ms_stack ms_stack_of_plan(const ms_stack *stack, const ms_plan *plan);

#endif
