/* Operations that a host launches one by one for a node of a layer program where no
 * compiler fuses them. [2.5.1] of docs/formulas. */
#ifndef MS_COSTMODEL_COST_HOST_OPERATIONS_H
#define MS_COSTMODEL_COST_HOST_OPERATIONS_H

#include "costmodel/program/program.h"

typedef struct ms_host_operations {
    int total;
    int sharded; /* part of `total` on DTensors, whose placements Python propagates */
} ms_host_operations;

/* Operations of PyTorch for a node with `kernels` kernels; `is_split`: tp shards tensors.
 * Counted from torchtitan's layers (models/llama3/model.py, from memory). */
ms_host_operations ms_node_host_operations(const ms_node *node, int kernels,
                                           bool is_split);

#endif
