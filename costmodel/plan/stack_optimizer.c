/* States and traffic of a plan's optimizer. */
#include "costmodel/plan/stack_choices.h"

#include "base/number.h"

const ms_optimizer_states ms_states_of_optimizer[MS_NUM_OPTIMIZERS] = {
    [MS_OPTIMIZER_ADAMW] = {2, 2, 0.0, 0.0, 0},
    [MS_OPTIMIZER_ADAM_8BIT] = {2, 2, 0.0, 0.0, 0},
    /* sums of squares, then the root mean square of the update that clips it */
    [MS_OPTIMIZER_ADAFACTOR] = {0, 1, 4.0, 2.0, 0},
    [MS_OPTIMIZER_SGD] = {1, 1, 0.0, 0.0, 0},
    [MS_OPTIMIZER_LION] = {1, 1, 0.0, 0.0, 0},
    [MS_OPTIMIZER_MUON] = {1, 2, 0.0, 0.0, 5},
};

static ms_coefficient chosen(double value)
{
    return (ms_coefficient){value, MS_SPEC, "the plan's optimizer"};
}

bool ms_plan_has_moment_blocks(const ms_plan *plan)
{
    return plan->optimizer_dtype == MS_STORE_INT8 ||
           (plan->optimizer == MS_OPTIMIZER_ADAM_8BIT &&
            plan->optimizer_dtype == MS_STORE_DEFAULT);
}

void ms_stack_set_optimizer(ms_stack *stack, const ms_plan *plan)
{
    const ms_optimizer_states *states = &ms_states_of_optimizer[plan->optimizer];
    if (plan->optimizer == MS_OPTIMIZER_ADAMW)
        return;
    double traffic_bytes = ms_update_traffic_bytes(stack);
    if (ms_plan_has_moment_blocks(plan))
        stack->moment_bytes = chosen(2.0 * ms_storage_bytes(MS_STORE_INT8, 0.0));
    double moment_bytes = stack->moment_bytes.value / 2.0;
    stack->moment_bytes = chosen(states->num_moments * moment_bytes);
    stack->optimizer_bytes =
        chosen(stack->optimizer_bytes.value + ms_update_traffic_bytes(stack) -
               traffic_bytes + states->gradient_passes * stack->grad_bytes.value);
    stack->vector_moment_bytes =
        (states->num_vector_moments - states->num_moments) * moment_bytes;
    stack->vector_optimizer_bytes = 2.0 * stack->vector_moment_bytes;
    /* sums of squares are not narrower than fp32, and as wide as wider moments */
    if (states->factored_bytes > 0.0)
        stack->factored_bytes = ms_max(states->factored_bytes, moment_bytes);
    stack->orthogonal_iterations = states->orthogonal_iterations;
}
