#include "sim/step/offload.h"

#include "base/number.h"

#include <math.h>

static bool has_host_activations(const ms_stack *stack)
{
    return stack->host_activation_frac.value > 0.0 || stack->host_layer_inputs;
}

ms_status ms_offload_check(ms_ctx *cx, const ms_workload *workload, const ms_plan *plan)
{
    const ms_stack *stack = workload->stack;
    const ms_host_link *host = &workload->cluster->host;
    bool updates = stack->host_optimizer == MS_HOST_UPDATE;
    if (!has_host_activations(stack) && stack->host_optimizer == MS_HOST_NO_OPTIMIZER)
        return MS_OK;
    if (isnan(host->bytes_per_s) || (updates && isnan(host->memory_bytes_per_s))) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "cluster \"%s\" states no %s",
                workload->cluster->name,
                isnan(host->bytes_per_s) ? "bandwidth of its links to the host"
                                         : "bandwidth of host memory");
        return ms_hint(cx,
                       "offloading takes that time: add \"host_link\" to a copy of the "
                       "cluster's file");
    }
    if (!updates || stack->host_update_bytes.value > 0.0)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "stack \"%s\" has no optimizer that runs on the host", plan->stack);
    return ms_hint(cx, "--offload-optimizer states; or a stack with host_update_bytes, "
                       "such as deepspeed or megatron");
}

/* Number of the job's ranks on a node, if it fills its nodes. */
static double node_ranks(const ms_workload *workload, const ms_links *links)
{
    return ms_min((double)links->world_span.size,
                  (double)workload->cluster->gpus_per_node);
}

double ms_host_copy_s(const ms_workload *workload, const ms_links *links, double bytes)
{
    const ms_host_link *host = &workload->cluster->host;
    if (isnan(host->bytes_per_s) || bytes <= 0.0)
        return 0.0;
    double ranks = node_ranks(workload, links);
    double bytes_per_s =
        host->bytes_per_s / ms_max(ms_min((double)host->gpus_per_link, ranks), 1.0);
    if (!isnan(host->memory_bytes_per_s))
        bytes_per_s = ms_min(bytes_per_s, host->memory_bytes_per_s / ranks);
    return bytes / bytes_per_s;
}

double ms_host_activations_s(const ms_workload *workload, const ms_bill *bill,
                             const ms_links *links)
{
    return ms_host_copy_s(workload, links, bill->memory.host_bytes);
}

double ms_host_gradients_s(const ms_workload *workload, const ms_links *links,
                           double num_params)
{
    const ms_stack *stack = workload->stack;
    if (stack->host_optimizer != MS_HOST_UPDATE || !stack->offloads_gradients)
        return 0.0;
    return ms_host_copy_s(workload, links, stack->grad_bytes.value * num_params);
}

/* Seconds in which the CPUs update the parameters; 0 if host memory is not known. */
static double host_update_s(const ms_workload *workload, const ms_links *links,
                            double num_params)
{
    const ms_stack *stack = workload->stack;
    double reached_bytes_per_s = workload->cluster->host.memory_bytes_per_s *
                                 stack->host_memory_frac.value /
                                 node_ranks(workload, links);
    if (isnan(reached_bytes_per_s) || reached_bytes_per_s <= 0.0)
        return 0.0;
    return stack->host_update_bytes.value * num_params / reached_bytes_per_s;
}

double ms_states_update_s(const ms_workload *workload, const ms_links *links,
                          double num_params)
{
    const ms_stack *stack = workload->stack;
    double device_s = ms_update_s(&workload->pricer, num_params);
    double state_bytes = stack->master_bytes.value + stack->moment_bytes.value;
    double stored_bytes = ms_stored_bytes(workload->compute);
    double down_bytes = stack->offloads_gradients ? 0.0 : stack->grad_bytes.value;
    if (stack->master_bytes.value == 0.0) /* the host has no other copy of parameters */
        down_bytes += stored_bytes;
    switch (stack->host_optimizer) {
    case MS_HOST_STATES:
        return ms_max(device_s,
                      ms_host_copy_s(workload, links, state_bytes * num_params));
    case MS_HOST_UPDATE:
        return ms_host_copy_s(workload, links, down_bytes * num_params) +
               host_update_s(workload, links, num_params) +
               ms_host_copy_s(workload, links, stored_bytes * num_params);
    case MS_HOST_NO_OPTIMIZER:
        break;
    }
    return device_s;
}
