#include "sim/step/sync_units.h"

#include "base/number.h"

#include <math.h>

/* Number of layers in the longest run of adjacent layers of a kind. */
static int longest_run(const ms_workload *workload, int kind)
{
    const ms_model *model = workload->model;
    int longest = 1;
    for (int layer = 0; layer < model->num_layers; layer++) {
        int length = layer - workload->first_alike[layer] + 1;
        if (model->kind_of_layer[layer] == kind && length > longest)
            longest = length;
    }
    return longest;
}

double ms_unit_layers(const ms_workload *workload, const ms_bill *bill, int kind)
{
    const ms_stack *stack = workload->stack;
    double layers = stack->unit_layers;
    double bytes =
        stack->grad_comm_bytes.value * (bill->dense_params + bill->expert_params);
    if (layers <= 0.0 && stack->sync_bucket_bytes > bytes && bytes > 0.0)
        layers = ceil(stack->sync_bucket_bytes / bytes);
    return layers > 1.0 ? ms_min(layers, longest_run(workload, kind)) : 1.0;
}

ms_sync_split ms_sync_split_of(const ms_stack *stack, const ms_bill *bill, bool expert,
                               double layers, double bytes)
{
    double unit_bytes = layers * bytes, bucket_bytes = stack->sync_bucket_bytes;
    double pieces = 1.0;
    if (bucket_bytes > 0.0 && unit_bytes > bucket_bytes)
        pieces = ms_max(
            ms_min(ceil(unit_bytes / bucket_bytes), layers * bill->num_matrices[expert]),
            1.0);
    return (ms_sync_split){unit_bytes / pieces, pieces / layers};
}

double ms_sync_s(const ms_collective_law *law, ms_sync_split split)
{
    return split.per_block * ms_collective_s(law, split.size_bytes);
}
