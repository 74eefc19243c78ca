/* Collective prices as PyTorch's DTensor estimates them, for comparing planned
 * redistributions with PyTorch's. */
#ifndef MS_TESTS_SUPPORT_PYTORCH_PRICES_H
#define MS_TESTS_SUPPORT_PYTORCH_PRICES_H

#include "costmodel/cost/collective_mesh.h"

/* Constants by which DTensor chooses redistributions
 * (torch/distributed/tensor/_collective_utils.py: MeshTopoInfo, allgather_cost,
 * allreduce_cost, reduce_scatter_cost, redistribute_cost for all-to-all), not measured
 * here. Collectives are rings; an axis is between hosts once the product of axis sizes
 * from the innermost one exceeds the GPUs of a host. Sends have no price. */
typedef struct ms_pytorch_constants {
    /* bandwidth inside a host (PyTorch's "base bandwidth"), GiB/s */
    double gibibytes_per_s;
    double inter_host_frac; /* bandwidth between hosts relative to that inside a host */
    double base_us;         /* latency of every collective, us */
    double intra_hop_us, inter_hop_us;
    double all_to_all_penalty_us; /* added to an all-to-all, so that it loses ties */
} ms_pytorch_constants;
extern const ms_pytorch_constants ms_pytorch_defaults;

/* Makes the prices of a mesh. A flattened axis, which PyTorch prices as a mesh of its
 * own, is between hosts if one of its axes is. */
ms_collective_prices ms_collective_prices_pytorch(ms_arena *arena, const ms_mesh *mesh,
                                                  const ms_pytorch_constants *constants,
                                                  long gpus_per_host);

#endif
