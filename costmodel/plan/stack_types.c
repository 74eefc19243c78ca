/* Types that a plan states for parameters, gradients, optimizer states and messages. */
#include "base/number.h"
#include "costmodel/plan/plan_field.h"
#include "costmodel/plan/stack_choices.h"

static ms_coefficient chosen(double value)
{
    return (ms_coefficient){value, MS_SPEC, "the plan's own choice"};
}

double ms_storage_bytes(ms_storage type, double otherwise)
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
    double bytes = ms_storage_bytes(plan->param_dtype, stack->param_bytes.value);
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
    static const double bytes[] = {
        [MS_MASTER_FP32] = 4.0, [MS_MASTER_BF16] = 2.0, [MS_MASTER_NONE] = 0.0};
    double states = ms_storage_bytes(plan->optimizer_dtype, 4.0);
    if (plan->master_dtype != MS_MASTER_DEFAULT)
        stack->master_bytes = chosen(bytes[plan->master_dtype]);
    else if (states >= 2.0 && states <= stack->param_bytes.value)
        stack->master_bytes = chosen(0.0);
    else if (states >= 2.0 && stack->master_bytes.value > states)
        stack->master_bytes = chosen(states);
}

/* Gradients wider than the sums' 4 bytes are copies in 16 bits beside these. */
static void set_grads(ms_stack *stack, const ms_plan *plan, double before)
{
    double copies = ms_max(before - 4.0, 0.0),
           bytes = ms_storage_bytes(plan->grad_dtype, before);
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

static void set_messages(ms_stack *stack, const ms_plan *plan)
{
    if (plan->comm_dtype == MS_STORE_FP8) {
        stack->gathers_cast = true;
        stack->param_comm_bytes = chosen(1.0);
    } else if (plan->comm_dtype != MS_STORE_DEFAULT) {
        stack->grad_comm_bytes = chosen(ms_storage_bytes(plan->comm_dtype, 0.0));
    }
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
        stack->moment_bytes = chosen(2.0 * ms_storage_bytes(plan->optimizer_dtype, 0.0));
    if (plan->optimizer_dtype != MS_STORE_DEFAULT ||
        plan->master_dtype != MS_MASTER_DEFAULT)
        set_master(stack, plan);
    set_grads(stack, plan, grad_bytes);
    set_messages(stack, plan);
    set_accumulation(stack, grad_bytes);
    double change_bytes = ms_update_traffic_bytes(stack) - traffic_bytes;
    if (change_bytes != 0.0)
        stack->optimizer_bytes = chosen(stack->optimizer_bytes.value + change_bytes);
}

void ms_stack_set_recipe(ms_stack *stack, const ms_plan *plan)
{
    stack->scaling = ms_recipe_scaling(plan->recipe);
    if (stack->scaling != NULL && !stack->scaling->by_tensor &&
        stack->casts_once_by_tensor)
        stack->casts_once = false;
}

/* An optimizer with moments in 8 bits that states wider ones is another optimizer. */
static ms_status check_moments(ms_ctx *cx, const ms_plan *plan)
{
    if (plan->optimizer != MS_OPTIMIZER_ADAM_8BIT || ms_plan_has_moment_blocks(plan))
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "optimizer adam8bit has moments in int8, not in the %s of --optimizer-dtype",
            ms_plan_value_text(cx->arena, plan, MS_CHOOSE_OPTIMIZER_DTYPE));
    return ms_hint(cx, "leave out --optimizer-dtype, or take --optimizer adamw");
}

ms_status ms_plan_check_types(ms_ctx *cx, const ms_plan *plan, const ms_device *device)
{
    const ms_operand_scaling *scaling = ms_recipe_scaling(plan->recipe);
    const char *name = ms_recipe_names[plan->recipe];
    bool has_fp8 = plan->param_dtype == MS_STORE_FP8 || plan->comm_dtype == MS_STORE_FP8;
    if (has_fp8 && ms_dtype_bytes(plan->compute) > 1.0) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "fp8 parameters need a compute type of 8 bits");
        return ms_hint(cx, "--precision fp8, or leave out fp8 of %s",
                       plan->param_dtype == MS_STORE_FP8 ? "params" : "comm");
    }
    MS_TRY(check_moments(cx, plan));
    if (scaling == NULL)
        return MS_OK;
    if (scaling->compute != plan->compute) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "recipe %s computes in %s, the plan in %s",
                name, ms_dtype_names[scaling->compute], ms_dtype_names[plan->compute]);
        const char *type = ms_dtype_names[scaling->compute];
        return ms_hint(cx, "--precision %s; of a run, --dtype %s", type, type);
    }
    /* an unlisted rate is NaN */
    if (!scaling->needs_blocks || device->peak_flop_per_s[MS_FP4] > 0.0)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s has no tensor cores with block scales for %s",
            device->name, name);
    return ms_hint(cx, "recipes delayed, tensorwise, rowwise and blockwise need none");
}
