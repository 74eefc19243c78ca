#include "exec/core/plan_types.h"

#include "costmodel/plan/plan_field.h"
#include "costmodel/plan/stack_choices.h"

static ms_coefficient bytes_of(ms_scalar scalar, double elements)
{
    return (ms_coefficient){.value = elements * (double)ms_scalar_bytes(scalar)};
}

/* The type of a stored number; moments of 8 bits have a share of a scale more. */
static ms_scalar scalar_of(double bytes)
{
    return bytes >= 8.0   ? MS_SCALAR_FP64
           : bytes >= 4.0 ? MS_SCALAR_FP32
           : bytes >= 2.0 ? MS_SCALAR_BF16
                          : MS_SCALAR_BYTE;
}

/* Bytes of a moment: of matrices, or if these have none, of other weights. */
static double moment_bytes(const ms_stack *stack, ms_optimizer optimizer)
{
    const ms_optimizer_states *states = &ms_states_of_optimizer[optimizer];
    return states->num_moments > 0
               ? stack->moment_bytes.value / states->num_moments
               : stack->vector_moment_bytes / states->num_vector_moments;
}

ms_precision ms_precision_of_plan(ms_real_type type, const ms_plan *plan)
{
    ms_precision p = ms_precision_of(type);
    ms_stack stack = {.param_bytes = bytes_of(p.param, 1),
                      .param_comm_bytes = bytes_of(p.gather, 1),
                      .grad_bytes = bytes_of(p.gradient, 1),
                      .grad_comm_bytes = bytes_of(p.comm, 1),
                      .moment_bytes = bytes_of(p.moment, 2),
                      .master_bytes = bytes_of(p.master, p.has_master)};
    ms_stack_set_types(&stack, plan);
    ms_stack_set_optimizer(&stack, plan);
    p.param = scalar_of(stack.param_bytes.value);
    p.gather = scalar_of(stack.param_comm_bytes.value);
    p.gradient = scalar_of(stack.grad_bytes.value);
    p.comm = scalar_of(stack.grad_comm_bytes.value);
    p.moment = scalar_of(moment_bytes(&stack, plan->optimizer));
    p.has_master = stack.master_bytes.value > 0.0;
    if (p.has_master)
        p.master = scalar_of(stack.master_bytes.value);
    if (plan->reduce_bits != MS_NOT_QUANTISED)
        p.comm = p.real;
    return p;
}

bool ms_plan_narrows(ms_real_type type, const ms_plan *plan)
{
    ms_precision p = ms_precision_of_plan(type, plan), all = ms_precision_of(type);
    return p.param != all.param || p.gather != all.gather || p.gradient != all.gradient ||
           p.comm != all.comm || (p.has_master && p.master != all.master);
}

/* ---- refusals ---- */

static ms_status refuse(ms_ctx *cx, const ms_plan *plan, ms_choice choice,
                        const char *where, const char *hint)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "a run does not execute %s %s%s",
            ms_plan_fields[choice].flag, ms_plan_value_text(cx->arena, plan, choice),
            where);
    return ms_hint(cx, "%s", hint);
}

ms_status ms_plan_check_run_types(ms_ctx *cx, ms_real_type type, const ms_plan *plan)
{
    static const ms_choice choices[] = {MS_CHOOSE_PARAM_DTYPE, MS_CHOOSE_GRAD_DTYPE,
                                        MS_CHOOSE_COMM_DTYPE, MS_CHOOSE_MASTER_DTYPE};
    for (int i = 0; i < 4; i++)
        if (type == MS_REAL_FP64 && !ms_plan_is_plain(plan, choices[i]))
            return refuse(cx, plan, choices[i], " in fp64",
                          "all is in fp64 there; --dtype fp32 or bf16 has such types");
    ms_precision p = ms_precision_of_plan(type, plan);
    if (p.has_master && ms_scalar_bytes(p.master) < ms_scalar_bytes(p.param))
        return refuse(cx, plan, MS_CHOOSE_MASTER_DTYPE, " beside parameters in fp32",
                      "--param-dtype bf16, or --master-dtype none");
    if (plan->lora_rank > 0 && p.gather != p.real)
        return refuse(cx, plan, MS_CHOOSE_PARAM_DTYPE, " of adapters in fp32",
                      "--dtype bf16, or leave out --param-dtype");
    return MS_OK;
}
