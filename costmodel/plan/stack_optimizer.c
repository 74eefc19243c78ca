/* States and traffic of a plan's optimizer. */
#include "costmodel/plan/stack_choices.h"

/* States in place of AdamW's two moments. Sources: Loshchilov and Hutter
 * 2019 (arXiv 1711.05101); Dettmers et al. 2022 (arXiv 2110.02861); Shazeer and Stern 2018
 * (arXiv 1804.04235), algorithm 4; torch.optim.SGD with momentum; Chen et al. 2023 (arXiv
 * 2302.06675), algorithm 2; Jordan et al. 2024 (kellerjordan.github.io/posts/muon). */
typedef struct optimizer_states {
    double num_moments;        /* per parameter of a matrix */
    double num_vector_moments; /* per parameter that is in no matrix */
    double factored_bytes;     /* per row and per column of a matrix */
    double gradient_passes;    /* readings of the gradient besides the first one */
    double orthogonal_iterations;
} optimizer_states;

static const optimizer_states states_of[MS_NUM_OPTIMIZERS] = {
    [MS_OPTIMIZER_ADAMW] = {2.0, 2.0, 0.0, 0.0, 0.0},
    [MS_OPTIMIZER_ADAM_8BIT] = {2.0, 2.0, 0.0, 0.0, 0.0},
    /* sums of squares, then the root mean square of the update that clips it */
    [MS_OPTIMIZER_ADAFACTOR] = {0.0, 1.0, 4.0, 2.0, 0.0},
    [MS_OPTIMIZER_SGD] = {1.0, 1.0, 0.0, 0.0, 0.0},
    [MS_OPTIMIZER_LION] = {1.0, 1.0, 0.0, 0.0, 0.0},
    [MS_OPTIMIZER_MUON] = {1.0, 2.0, 0.0, 0.0, 5.0},
};

static ms_coefficient chosen(double value)
{
    return (ms_coefficient){value, MS_SPEC, "the plan's optimizer"};
}

void ms_stack_set_optimizer(ms_stack *stack, const ms_plan *plan)
{
    const optimizer_states *states = &states_of[plan->optimizer];
    if (plan->optimizer == MS_OPTIMIZER_ADAMW)
        return;
    double traffic_bytes = ms_update_traffic_bytes(stack);
    if (plan->optimizer == MS_OPTIMIZER_ADAM_8BIT &&
        plan->optimizer_dtype == MS_STORE_DEFAULT)
        stack->moment_bytes = chosen(2.0 * ms_storage_bytes(MS_STORE_INT8, 0.0));
    double moment_bytes = stack->moment_bytes.value / 2.0;
    stack->moment_bytes = chosen(states->num_moments * moment_bytes);
    stack->optimizer_bytes =
        chosen(stack->optimizer_bytes.value + ms_update_traffic_bytes(stack) -
               traffic_bytes + states->gradient_passes * stack->grad_bytes.value);
    stack->vector_moment_bytes =
        (states->num_vector_moments - states->num_moments) * moment_bytes;
    stack->vector_optimizer_bytes = 2.0 * stack->vector_moment_bytes;
    stack->factored_bytes = states->factored_bytes;
    stack->orthogonal_iterations = states->orthogonal_iterations;
}
