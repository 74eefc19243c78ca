/* How the host launches a plan's kernels: torch.compile and CUDA graphs. */
#include "costmodel/plan/stack_choices.h"

static bool is_compiled(ms_compile compile)
{
    return compile == MS_COMPILE_REGIONAL || compile == MS_COMPILE_FULL;
}

/* Whether the plan's layers are compiled and the stack's are not, or the other way. */
static bool needs_counterpart(const ms_stack *stack, const ms_plan *plan)
{
    return plan->compile != MS_COMPILE_OF_STACK &&
           is_compiled(plan->compile) != is_compiled(stack->compile);
}

/* Replaces the numbers that torch.compile changes: chains that are fused or not, what
 * they save, the loss, launches. */
static void take_numbers(const ms_stack *from, ms_stack *stack)
{
    stack->unfused_traffic = from->unfused_traffic;
    stack->norm_bytes = from->norm_bytes;
    stack->norm_grad_bytes = from->norm_grad_bytes;
    stack->launch_frac = from->launch_frac;
    stack->logit_bytes = from->logit_bytes;
    stack->sharded_logit_bytes = from->sharded_logit_bytes;
    stack->fragmentation_frac = from->fragmentation_frac;
    stack->keeps_gate = from->keeps_gate;
    stack->keeps_eager_norms = from->keeps_eager_norms;
    stack->launches_operations = from->launches_operations;
    stack->dtensor_s = from->dtensor_s;
}

void ms_stack_set_host(ms_stack *stack, const ms_plan *plan)
{
    if (needs_counterpart(stack, plan) && stack->counterpart != NULL)
        take_numbers(stack->counterpart, stack);
    if (plan->compile != MS_COMPILE_OF_STACK)
        stack->compile = plan->compile;
    if (plan->cuda_graphs != MS_GRAPHS_NONE)
        stack->cuda_graphs = plan->cuda_graphs;
    stack->graphs_experts = ms_plan_pads_experts(plan);
}

ms_status ms_plan_check_host(ms_ctx *cx, const ms_plan *plan, const ms_stack *stack,
                             const ms_model *model)
{
    bool is_none = plan->compile == MS_COMPILE_NONE;
    if (needs_counterpart(stack, plan) && stack->counterpart == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "stack \"%s\" has no numbers for layers %s",
                plan->stack,
                is_none ? "that are not compiled" : "compiled by torch.compile");
        return ms_hint(cx, "leave out --compile, or take a stack that has both, such as "
                           "torchtitan or torchtune");
    }
    if (plan->cuda_graphs == MS_GRAPHS_NONE)
        return MS_OK;
    if (stack->graph_launch_s.value <= 0.0) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "stack \"%s\" has no CUDA graphs",
                plan->stack);
        return ms_hint(cx, "leave out --cuda-graphs, or take a stack with graph_launch, "
                           "such as megatron or torchtitan");
    }
    if (plan->cuda_graphs != MS_GRAPHS_FULL || model->moe.num_experts == 0 ||
        ms_plan_pads_experts(plan))
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "one CUDA graph of a step needs experts of fixed shapes");
    return ms_hint(cx, "--cuda-graphs layers, or --expert-capacity X --pad-experts");
}
