#include "costmodel/plan/stack_choices.h"

ms_stack ms_stack_of_plan(const ms_stack *stack, const ms_plan *plan)
{
    return ms_stack_adapt(stack, plan->compute);
}
