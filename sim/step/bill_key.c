#include "sim/step/bill_key.h"

#include "sim/step/host_time.h"

/* Whether a layer computes for longer than the host takes to launch it. Then the host
 * frees activations gathered over tp long before the device is done with them. */
static bool host_is_ahead(ms_workload *workload, const ms_plan *plan,
                          const ms_bill_key *without)
{
    ms_bill_set *bills = ms_workload_bills(workload, without);
    const ms_bill *layer = bills->layer[0][MS_RECOMPUTE_NONE];
    bool over_nodes = plan->gpus > workload->cluster->levels[0].gpus_per_domain;
    double host_s =
        ms_host_floor_s(workload->stack, layer, over_nodes, plan->size[MS_TP]);
    return layer->compute_s[MS_BILL_FORWARD] + layer->compute_s[MS_BILL_BACKWARD] >
           host_s; /* false for NaN: the stack states no host time */
}

static bool holds_gathers(ms_workload *workload, const ms_plan *plan,
                          const ms_bill_key *key)
{
    const ms_stack *stack = workload->stack;
    long stages = plan->size[MS_PP], tp = plan->size[MS_TP];
    if (!stack->regather || !stack->holds_gathers_alone || stages == 1)
        return stack->regather && stack->holds_gathers_alone;
    bool in_domain = tp <= workload->cluster->levels[0].gpus_per_domain;
    return tp > 1 && in_domain && ms_plan_microbatches(plan) > stages &&
           host_is_ahead(workload, plan, key);
}

ms_bill_key ms_plan_bill_key(ms_workload *workload, const ms_plan *plan)
{
    ms_bill_key key = {.tp = (short)plan->size[MS_TP],
                       .cp = (short)plan->size[MS_CP],
                       .ep = (short)plan->ep,
                       .etp = (short)plan->etp,
                       .microbatch = (int)plan->microbatch,
                       .sequence_parallel = plan->sequence_parallel,
                       .loss_parallel = plan->loss_parallel,
                       .cp_method = (unsigned char)ms_plan_cp_method(plan),
                       .cp_unbalanced = ms_plan_has_unequal_ranks(plan)};
    key.holds_gathers = holds_gathers(workload, plan, &key);
    return key;
}
