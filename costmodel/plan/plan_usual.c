#include "costmodel/plan/plan_usual.h"

#include "costmodel/schedule/schedule.h"

#include <string.h>

long ms_usual_batch(const ms_plan *plan, const ms_stack *stack)
{
    (void)stack;
    return ms_plan_default_batch(plan->gpus, plan->sequence_length);
}

/* Whether a schedule can have so many virtual stages; 1 stands for any number, too. */
static bool has_chunks(ms_schedule_kind kind, long virtual_stages)
{
    ms_schedule_traits traits = ms_schedule_traits_of(kind);
    return virtual_stages == 1 ||
           (virtual_stages >= traits.least_virtual &&
            (traits.most_virtual == 0 || virtual_stages <= traits.most_virtual));
}

/* The stack's default, interleaved with virtual stages, or the first schedule that the
 * stack has. Without a pipeline, where none has an effect, 1F1B. */
long ms_usual_schedule(const ms_plan *plan, const ms_stack *stack)
{
    bool is_free = stack == NULL || plan->size[MS_PP] == 1;
    ms_schedule_kind usual = plan->virtual_stages > 1 ? MS_INTERLEAVED
                             : is_free                ? MS_1F1B
                                                      : stack->default_schedule;
    if (is_free || stack->can_schedule[usual])
        return usual;
    for (ms_schedule_kind kind = 0; kind < MS_CUSTOM; kind++)
        if (stack->can_schedule[kind] && has_chunks(kind, plan->virtual_stages))
            return kind;
    return usual;
}

/* Default number of virtual stages; with a schedule file the number from that file. */
long ms_usual_virtual_stages(const ms_plan *plan, const ms_stack *stack)
{
    (void)stack;
    return plan->schedule == MS_CUSTOM
               ? plan->virtual_stages
               : ms_schedule_default_virtual(plan->schedule, plan->size[MS_PP]);
}

long ms_usual_zero(const ms_plan *plan, const ms_stack *stack)
{
    if (plan->size[MS_DP_SHARD] * plan->size[MS_CP] == 1)
        return 0;
    long zero = plan->size[MS_PP] > 1 && stack->pipeline_zero >= 0 ? stack->pipeline_zero
                                                                   : stack->default_zero;
    return zero >= 0 ? zero : 3;
}

long ms_usual_reshard(const ms_plan *plan, const ms_stack *stack)
{
    bool in_pipelines = stack != NULL && stack->reshards_in_pipelines;
    return plan->zero == 3 && (plan->size[MS_PP] == 1 || in_pipelines);
}

long ms_usual_sequence_parallel(const ms_plan *plan, const ms_stack *stack)
{
    return plan->size[MS_TP] > 1 && !stack->lacks_sequence_parallel;
}

long ms_usual_cp_method(const ms_plan *plan, const ms_stack *stack)
{
    return plan->size[MS_CP] > 1 ? (long)stack->cp_method : MS_CP_ALL_GATHER;
}

long ms_usual_recompute(const ms_plan *plan, const ms_stack *stack)
{
    if (plan->recompute_modules != 0)
        return MS_RECOMPUTE_SELECTIVE;
    for (long mode = 0; ms_recompute_names[mode] != NULL; mode++)
        if (strcmp(ms_recompute_names[mode], stack->recompute) == 0)
            return mode;
    return MS_RECOMPUTE_NONE;
}
