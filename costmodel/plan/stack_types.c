/* Types that a plan states for parameters, gradients, optimizer states and messages. */
#include "base/number.h"
#include "costmodel/plan/stack_choices.h"

static ms_coefficient chosen(double value)
{
    return (ms_coefficient){value, MS_SPEC, "the plan's own choice"};
}

/* Bytes of a stored value; `otherwise`: those of the stack's own. An 8-bit integer shares
 * an fp32 scale with 255 others (bitsandbytes, functional.py, blocksize 256); FP8 moments
 * have one scale per tensor (Transformer Engine, optimizers/fused_adam.py), which counts
 * as none. */
static double bytes_of(ms_storage type, double otherwise)
{
    static const double bytes[] = {[MS_STORE_FP32] = 4.0,
                                   [MS_STORE_BF16] = 2.0,
                                   [MS_STORE_FP8] = 1.0,
                                   [MS_STORE_INT8] = 1.0 + 4.0 / 256.0};
    return type == MS_STORE_DEFAULT ? otherwise : bytes[type];
}

double ms_update_traffic_bytes(const ms_stack *stack)
{
    double master = stack->master_bytes.value;
    return stack->grad_bytes.value + 2.0 * (master + stack->moment_bytes.value) +
           (master > 0.0 ? 1.0 : 2.0) * stack->param_bytes.value;
}

static void set_params(ms_stack *stack, const ms_plan *plan)
{
    double bytes = bytes_of(plan->param_dtype, stack->param_bytes.value);
    if (plan->param_dtype == MS_STORE_DEFAULT)
        return;
    bool follows = stack->master_bytes.value == 0.0 && bytes < stack->param_bytes.value;
    stack->param_bytes = chosen(bytes);
    stack->param_comm_bytes = chosen(ms_min(stack->param_comm_bytes.value, bytes));
    if (plan->param_dtype == MS_STORE_FP8)
        stack->gathers_cast = true;
    if (bytes >= 4.0)
        stack->master_bytes = chosen(0.0);
    if (follows) {
        stack->grad_bytes = chosen(ms_min(stack->grad_bytes.value, ms_max(bytes, 2.0)));
        stack->moment_bytes = chosen(2.0 * ms_max(bytes, 2.0));
    }
}

static void set_master(ms_stack *stack, const ms_plan *plan)
{
    static const double bytes[] = {[MS_MASTER_FP32] = 4.0, [MS_MASTER_BF16] = 2.0};
    double states = bytes_of(plan->optimizer_dtype, 4.0);
    if (plan->master_dtype != MS_MASTER_DEFAULT)
        stack->master_bytes = chosen(bytes[plan->master_dtype % MS_MASTER_NONE]);
    else if (states >= 2.0 && states <= stack->param_bytes.value)
        stack->master_bytes = chosen(0.0);
    else if (states >= 2.0 && stack->master_bytes.value > states)
        stack->master_bytes = chosen(states);
}

/* Gradients wider than the sums' 4 bytes are copies in 16 bits beside these. */
static void set_grads(ms_stack *stack, const ms_plan *plan, double before)
{
    double copies = ms_max(before - 4.0, 0.0), bytes = bytes_of(plan->grad_dtype, before);
    bool same_messages = stack->grad_comm_bytes.value == before - copies;
    if (plan->grad_dtype == MS_STORE_DEFAULT)
        return;
    stack->grad_bytes = chosen(bytes + (bytes >= 4.0 ? copies : 0.0));
    if (bytes < 4.0)
        stack->bucket_bytes = stack->late_grad_bytes = chosen(0.0);
    stack->head_grad_bytes = chosen(ms_min(stack->head_grad_bytes.value, bytes));
    if (same_messages)
        stack->grad_comm_bytes = chosen(bytes);
}

/* Sums are read and written once or more for each time that 16-bit gradients are read. */
static void set_accumulation(ms_stack *stack, double grad_bytes)
{
    double passes_bytes = stack->accumulate_bytes.value - 2.0;
    if (passes_bytes > 0.0 && stack->grad_bytes.value != grad_bytes)
        stack->accumulate_bytes =
            chosen(2.0 + passes_bytes * stack->grad_bytes.value / grad_bytes);
}

void ms_stack_set_types(ms_stack *stack, const ms_plan *plan)
{
    double traffic_bytes = ms_update_traffic_bytes(stack);
    double grad_bytes = stack->grad_bytes.value;
    set_params(stack, plan);
    if (plan->optimizer_dtype != MS_STORE_DEFAULT)
        stack->moment_bytes = chosen(2.0 * bytes_of(plan->optimizer_dtype, 0.0));
    if (plan->optimizer_dtype != MS_STORE_DEFAULT ||
        plan->master_dtype != MS_MASTER_DEFAULT)
        set_master(stack, plan);
    set_grads(stack, plan, grad_bytes);
    if (plan->comm_dtype != MS_STORE_DEFAULT)
        stack->grad_comm_bytes = chosen(bytes_of(plan->comm_dtype, 0.0));
    set_accumulation(stack, grad_bytes);
    double change_bytes = ms_update_traffic_bytes(stack) - traffic_bytes;
    if (change_bytes != 0.0)
        stack->optimizer_bytes = chosen(stack->optimizer_bytes.value + change_bytes);
}
