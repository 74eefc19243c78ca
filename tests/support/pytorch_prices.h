/* Collectives at the prices of PyTorch's DTensor, against which planned
 * redistributions are held. */
#ifndef MS_TESTS_SUPPORT_PYTORCH_PRICES_H
#define MS_TESTS_SUPPORT_PYTORCH_PRICES_H

#include "costmodel/cost/collective_price.h"

/* What DTensor chooses its redistributions by:
 * torch/distributed/tensor/_collective_utils.py of PyTorch (MeshTopoInfo, allgather_cost,
 * allreduce_cost, reduce_scatter_cost; all-to-all: redistribute_cost in the same file).
 * Rings on every axis; an axis is between hosts once the product of the sizes from the
 * innermost axis to it exceeds the GPUs of a host. Its own constants: not measured here,
 * and bandwidths are in GiB/s. No send. */
typedef struct ms_pytorch_constants {
    double gibibytes_per_s; /* inside a host: "base bandwidth" */
    double inter_host_frac; /* of that between hosts */
    double base_us;         /* of every collective */
    double intra_hop_us, inter_hop_us;
    double all_to_all_penalty_us; /* added, so that it loses ties */
} ms_pytorch_constants;
extern const ms_pytorch_constants ms_pytorch_defaults;

/* A flattened axis, which PyTorch prices as a mesh of its own, is between hosts if one of
 * its axes is. */
ms_collective_prices ms_collective_prices_pytorch(ms_arena *arena, const ms_mesh *mesh,
                                                  const ms_pytorch_constants *constants,
                                                  long gpus_per_host);

#endif
