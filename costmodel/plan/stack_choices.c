#include "costmodel/plan/stack_choices.h"

#include "costmodel/plan/plan_field.h"

static void choose_dispatcher(const ms_plan *plan, ms_stack *stack)
{
    if (plan->dispatcher == MS_DISPATCH_OF_STACK)
        return;
    stack->shares_token_copies = plan->dispatcher == MS_DISPATCH_DEEPEP;
    stack->gathers_tokens = plan->dispatcher == MS_DISPATCH_ALL_GATHER;
}

ms_status ms_plan_check_dispatcher(ms_ctx *cx, const ms_plan *plan)
{
    if (plan->dispatcher != MS_DISPATCH_HYBRIDEP)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "dispatcher hybridep is not priced: no published rates set it apart from "
            "deepep");
    return ms_hint(cx, "--moe-dispatcher deepep sends as few copies of tokens");
}

/* Bytes of a parameter in NF4 with double quantization (ms_lora_base). */
static const double nf4_bytes = (4.0 + 8.0 / 64.0 + 32.0 / (64.0 * 256.0)) / 8.0;

/* Frozen weights in 8 bits are stored once (Transformer Engine's fp8_model_init), so that
 * backward transposes them for each use: it reads and writes one byte each. */
static void set_frozen(const ms_plan *plan, ms_stack *stack)
{
    if (plan->lora_base == MS_BASE_NF4) {
        stack->frozen_param_bytes = nf4_bytes;
        stack->frozen_use_bytes = nf4_bytes + ms_stored_bytes(plan->compute);
        return;
    }
    stack->frozen_param_bytes = ms_dtype_bytes(plan->compute);
    if (ms_dtype_bytes(plan->compute) == 1.0)
        stack->frozen_transpose_bytes = 2.0;
}

static void set_offload(const ms_plan *plan, ms_stack *stack)
{
    if (plan->offload_activations_frac > 0.0)
        stack->host_activation_frac = (ms_coefficient){plan->offload_activations_frac,
                                                       MS_SPEC, "as the plan states"};
    stack->host_layer_inputs = plan->offload_layer_inputs;
    stack->host_optimizer = plan->offload_optimizer;
}

/* Returns true, and sets the bytes of an element, if it is quantized. */
static bool set_bits(ms_quantized_bits bits, ms_coefficient *comm_bytes)
{
    if (bits == MS_NOT_QUANTISED)
        return false;
    *comm_bytes =
        (ms_coefficient){(bits == MS_QUANTISED_8 ? 1.0 : 0.5) + 4.0 / MS_QUANTISED_BLOCK,
                         MS_SPEC, "quantized as the plan states, with scales"};
    return true;
}

/* Whether a plan states types, a recipe or an optimizer. */
static bool has_states(const ms_plan *plan)
{
    static const ms_choice choices[] = {MS_CHOOSE_PARAM_DTYPE,     MS_CHOOSE_GRAD_DTYPE,
                                        MS_CHOOSE_COMM_DTYPE,      MS_CHOOSE_MASTER_DTYPE,
                                        MS_CHOOSE_OPTIMIZER_DTYPE, MS_CHOOSE_RECIPE,
                                        MS_CHOOSE_OPTIMIZER};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (!ms_plan_is_plain(plan, choices[i]))
            return true;
    return false;
}

static void set_states(const ms_plan *plan, ms_stack *stack)
{
    if (stack->has_choices || !has_states(plan))
        return;
    stack->has_choices = true;
    ms_stack_set_types(stack, plan);
    ms_stack_set_recipe(stack, plan);
    ms_stack_set_optimizer(stack, plan);
}

ms_stack ms_stack_of_plan(const ms_stack *stack, const ms_plan *plan)
{
    ms_stack own = *stack;
    ms_stack_set_host(&own, plan);
    ms_stack out = ms_stack_adapt(&own, plan->compute);
    set_states(plan, &out);
    choose_dispatcher(plan, &out);
    if (plan->lora_rank > 0)
        set_frozen(plan, &out);
    set_offload(plan, &out);
    out.partitions_inputs = plan->partition_activations;
    out.unit_layers = (double)plan->unit_layers;
    out.sync_bucket_bytes = plan->bucket_bytes;
    if (plan->recompute_modules != 0)
        out.selective_modules = plan->recompute_modules;
    out.overlaps_shared_experts = plan->shared_overlap;
    out.quantizes_gathers = set_bits(plan->gather_bits, &out.param_comm_bytes);
    out.quantizes_reductions = set_bits(plan->reduce_bits, &out.grad_comm_bytes);
    return out;
}
