#include "sim/host.h"

#include "base/number.h"

#include <math.h>

double ms_host_floor_s(const ms_stack *stack, bool pipelined_over_nodes, long tp)
{
    double ranks = ms_max((double)tp, 1.0);
    return stack->host_s_per_layer.value +
           (pipelined_over_nodes ? stack->host_s_pipelined_per_tp.value * ranks : 0.0);
}

static double floor_s(const ms_stack *stack, const ms_links *links)
{
    bool pipelined = links->pipeline_span.size > 1 && links->pipeline_span.tier > 0;
    return ms_host_floor_s(stack, pipelined, links->span[MS_BILL_TP].size);
}

static double num_nodes(const ms_span *span)
{
    return span->size > 1 ? ceil((double)span->size / (double)span->per_domain[0]) : 1.0;
}

double ms_stall_s(const ms_stack *stack, const ms_links *links)
{
    if (links->pipeline_span.size <= 1)
        return 0.0;
    double well_frac =
        pow(1.0 - stack->stalling_node_frac.value, num_nodes(&links->world_span));
    double wide = stack->stalling_tensor_nodes.value;
    bool tensor_stalls = wide > 0.0 && num_nodes(&links->span[MS_BILL_TP]) >= wide;
    return tensor_stalls || well_frac < 1.0 / 6.0 ? stack->message_stall_s.value : 0.0;
}

/* What the host launches in a forward pass. */
static double num_launches(const ms_bill *bill)
{
    double launches = bill->kernels[MS_BILL_FORWARD];
    for (int i = 0; i < bill->num_comms[MS_BILL_FORWARD]; i++)
        launches += bill->comms[MS_BILL_FORWARD][i].count;
    return launches;
}

double ms_host_s(const ms_workload *workload, const ms_bill *bill, const ms_links *links,
                 double layers, int pass)
{
    double seconds = layers * floor_s(workload->stack, links);
    if (!isnan(seconds))
        return seconds * (pass == MS_BILL_FORWARD ? 1.0 : 2.0) / 3.0;
    return bill->kernels[pass] * workload->profile->launch_s.value *
           workload->stack->launch_frac.value;
}

double ms_host_layers(const ms_bill *part, const ms_bill *layer)
{
    double launches = num_launches(layer);
    return launches > 0.0 ? num_launches(part) / launches : 1.0;
}
