#include "costmodel/plan/stack_choices.h"

ms_stack ms_stack_of_plan(const ms_stack *stack, const ms_plan *plan)
{
    ms_stack chosen = ms_stack_adapt(stack, plan->compute);
    ms_stack_set_types(&chosen, plan);
    ms_stack_set_optimizer(&chosen, plan);
    return chosen;
}
