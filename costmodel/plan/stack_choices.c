#include "costmodel/plan/stack_choices.h"

static void set_offload(const ms_plan *plan, ms_stack *stack)
{
    if (plan->offload_activations_frac > 0.0)
        stack->host_activation_frac = (ms_coefficient){plan->offload_activations_frac,
                                                       MS_SPEC, "as the plan states"};
    stack->host_layer_inputs = plan->offload_layer_inputs;
    stack->host_optimizer = plan->offload_optimizer;
}

ms_stack ms_stack_of_plan(const ms_stack *stack, const ms_plan *plan)
{
    ms_stack adapted = ms_stack_adapt(stack, plan->compute);
    set_offload(plan, &adapted);
    return adapted;
}
