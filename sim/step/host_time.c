#include "sim/step/host_time.h"

#include "base/number.h"

#include <math.h>

/* Sum of the group sizes over a pass's collectives, sends of ring attention left out.
 * `sizes`: number of ranks by mesh axis. */
static double collective_ranks(const ms_bill *bill, int pass,
                               const double sizes[MS_NUM_BILL_AXES])
{
    double ranks = 0.0;
    for (int i = 0; i < bill->num_comms[pass]; i++) {
        const ms_bill_comm *comm = &bill->comms[pass][i];
        if (!comm->ring)
            ranks += (double)comm->count * sizes[comm->axis];
    }
    return ranks;
}

double ms_host_floor_s(const ms_stack *stack, const ms_bill *layer,
                       bool pipelined_over_nodes, long tp)
{
    const double sizes[MS_NUM_BILL_AXES] = {[MS_BILL_TP] = (double)tp};
    double ranks = 0.0;
    for (int pass = 0; pass < MS_NUM_BILL_PASSES && pipelined_over_nodes; pass++)
        ranks += collective_ranks(layer, pass, sizes);
    return stack->host_s_per_layer.value +
           ranks * stack->host_s_per_collective_rank.value;
}

/* Host seconds that the collectives of a pass add, in proportion to the ranks of their
 * groups; 0 unless the pipeline spans nodes. */
static double collectives_s(const ms_stack *stack, const ms_bill *bill,
                            const ms_links *links, int pass)
{
    if (links->pipeline_span.size <= 1 || links->pipeline_span.tier <= 0)
        return 0.0;
    double sizes[MS_NUM_BILL_AXES];
    for (int axis = 0; axis < MS_NUM_BILL_AXES; axis++)
        sizes[axis] = (double)links->span[axis].size;
    return collective_ranks(bill, pass, sizes) * stack->host_s_per_collective_rank.value;
}

/* Whether the group spans at least `nodes` nodes; false if `nodes` is 0. */
static bool reaches(const ms_span *span, double nodes)
{
    double own =
        span->size > 1 ? ceil((double)span->size / (double)span->per_domain[0]) : 1.0;
    return nodes > 0.0 && own >= nodes;
}

double ms_stall_s(const ms_stack *stack, const ms_links *links)
{
    if (links->pipeline_span.size <= 1)
        return 0.0;
    bool stalls = reaches(&links->world_span, stack->stalling_nodes.value) ||
                  reaches(&links->span[MS_BILL_TP], stack->stalling_tensor_nodes.value);
    return stalls ? stack->message_stall_s.value : 0.0;
}

/* Number of kernels, except those of experts, and collectives in a block's forward. */
static double num_launches(const ms_bill *bill)
{
    double launches =
        bill->kernels[MS_BILL_FORWARD] - bill->expert_kernels[MS_BILL_FORWARD];
    for (int i = 0; i < bill->num_comms[MS_BILL_FORWARD]; i++)
        launches += bill->comms[MS_BILL_FORWARD][i].count;
    return launches;
}

/* ---- launches ---- */

/* Whether torch.compile makes the block's kernels. */
static bool is_compiled(const ms_stack *stack, const ms_bill *bill)
{
    return stack->compile == MS_COMPILE_FULL ||
           (stack->compile == MS_COMPILE_REGIONAL && bill->block == MS_BLOCK_LAYER);
}

/* Whether the host launches each operation of the block by itself. Blocks beside compiled
 * layers are as the layers of a stack that is not compiled. */
static bool launches_operations(const ms_stack *stack, const ms_bill *bill)
{
    return !is_compiled(stack, bill) &&
           (stack->launches_operations || stack->compile == MS_COMPILE_REGIONAL);
}

static bool is_graph(const ms_stack *stack, const ms_bill *bill)
{
    return stack->cuda_graphs == MS_GRAPHS_FULL ||
           (stack->cuda_graphs == MS_GRAPHS_LAYERS && bill->block == MS_BLOCK_LAYER);
}

/* Seconds of launches that no graph and no measured value for a layer includes. */
static double kernels_s(const ms_workload *workload, double kernels)
{
    return kernels * workload->profile->launch_s.value *
           workload->stack->launch_frac.value;
}

static double operations_s(const ms_workload *workload, const ms_host_operations *sum)
{
    return sum->total * workload->profile->launch_s.value +
           sum->sharded * workload->stack->dtensor_s.value;
}

/* Experts outside of the graph, whose shapes the host must know. */
static double graph_s(const ms_workload *workload, const ms_bill *bill, int pass)
{
    const ms_stack *stack = workload->stack;
    if (stack->cuda_graphs == MS_GRAPHS_FULL)
        return 0.0;
    return stack->graph_launch_s.value +
           (stack->graphs_experts ? 0.0
                                  : kernels_s(workload, bill->expert_kernels[pass]));
}

double ms_host_launches(const ms_workload *workload, const ms_bill *bill, int pass)
{
    const ms_stack *stack = workload->stack;
    double experts = stack->graphs_experts ? 0.0 : bill->expert_kernels[pass];
    if (is_graph(stack, bill))
        return stack->cuda_graphs == MS_GRAPHS_FULL ? 0.0 : 1.0 + experts;
    if (launches_operations(stack, bill))
        return bill->operations[pass].total;
    double launches = bill->kernels[pass];
    for (int i = 0; i < bill->num_comms[pass]; i++)
        launches += bill->comms[pass][i].count;
    return launches;
}

double ms_host_s(const ms_workload *workload, const ms_bill *bill, const ms_links *links,
                 double layers, int pass)
{
    const ms_stack *stack = workload->stack;
    if (is_graph(stack, bill))
        return graph_s(workload, bill, pass);
    double waits_s = collectives_s(stack, bill, links, pass);
    double floor_s = layers * stack->host_s_per_layer.value;
    double share = (pass == MS_BILL_FORWARD ? 1.0 : 2.0) / 3.0;
    if (!isnan(floor_s))
        return share * floor_s + kernels_s(workload, bill->expert_kernels[pass]) +
               waits_s;
    return waits_s + (launches_operations(stack, bill)
                          ? operations_s(workload, &bill->operations[pass])
                          : kernels_s(workload, bill->kernels[pass]));
}

double ms_host_layers(const ms_bill *block, const ms_bill *layer)
{
    double launches = num_launches(layer);
    return launches > 0.0 ? num_launches(block) / launches : 1.0;
}
