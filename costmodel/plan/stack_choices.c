#include "costmodel/plan/stack_choices.h"

static void choose_dispatcher(const ms_plan *plan, ms_stack *stack)
{
    if (plan->dispatcher == MS_DISPATCH_OF_STACK)
        return;
    stack->shares_token_copies = plan->dispatcher == MS_DISPATCH_DEEPEP;
    stack->gathers_tokens = plan->dispatcher == MS_DISPATCH_ALL_GATHER;
}

ms_stack ms_stack_of_plan(const ms_stack *stack, const ms_plan *plan)
{
    ms_stack out = ms_stack_adapt(stack, plan->compute);
    choose_dispatcher(plan, &out);
    return out;
}
