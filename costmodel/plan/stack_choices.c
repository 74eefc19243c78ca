#include "costmodel/plan/stack_choices.h"

#include "costmodel/plan/plan_field.h"

bool ms_plan_same_stack(const ms_plan *a, const ms_plan *b)
{
    static const ms_choice choices[] = {MS_CHOOSE_COMPUTE,      MS_CHOOSE_PARAM_DTYPE,
                                        MS_CHOOSE_GRAD_DTYPE,   MS_CHOOSE_COMM_DTYPE,
                                        MS_CHOOSE_MASTER_DTYPE, MS_CHOOSE_OPTIMIZER_DTYPE,
                                        MS_CHOOSE_RECIPE,       MS_CHOOSE_OPTIMIZER};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (!ms_plan_same(a, b, choices[i]))
            return false;
    return true;
}

ms_stack ms_stack_of_plan(const ms_stack *stack, const ms_plan *plan)
{
    ms_plan plain = {.compute = plan->compute};
    ms_stack chosen = ms_stack_adapt(stack, plan->compute);
    if (chosen.has_choices || ms_plan_same_stack(plan, &plain))
        return chosen;
    chosen.has_choices = true;
    ms_stack_set_types(&chosen, plan);
    ms_stack_set_recipe(&chosen, plan);
    ms_stack_set_optimizer(&chosen, plan);
    return chosen;
}
