#include "costmodel/plan/stack_choices.h"

static void set_offload(const ms_plan *plan, ms_stack *stack)
{
    if (plan->offload_activations_frac > 0.0)
        stack->host_activation_frac = (ms_coefficient){plan->offload_activations_frac,
                                                       MS_SPEC, "as the plan states"};
    stack->host_layer_inputs = plan->offload_layer_inputs;
    stack->host_optimizer = plan->offload_optimizer;
}

/* Returns true, and sets the bytes of an element, if it is quantised. */
static bool set_bits(ms_quantised_bits bits, ms_coefficient *comm_bytes)
{
    if (bits == MS_NOT_QUANTISED)
        return false;
    *comm_bytes = (ms_coefficient){bits == MS_QUANTISED_8 ? 1.0 : 0.5, MS_SPEC,
                                   "quantised as the plan states, scales left out"};
    return true;
}

ms_stack ms_stack_of_plan(const ms_stack *stack, const ms_plan *plan)
{
    ms_stack adapted = ms_stack_adapt(stack, plan->compute);
    set_offload(plan, &adapted);
    adapted.quantises_gathers = set_bits(plan->gather_bits, &adapted.param_comm_bytes);
    adapted.quantises_reductions = set_bits(plan->reduce_bits, &adapted.grad_comm_bytes);
    return adapted;
}
