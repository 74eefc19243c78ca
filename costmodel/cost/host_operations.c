#include "costmodel/cost/host_operations.h"

/* Operations of an eager kernel chain. Casts to fp32 and back count; views do not, since
 * they launch nothing. `sharded`: its tensors are DTensors under torchtitan's tensor
 * parallelism (distributed/tensor_parallel.py), whose linear layers return local ones. */
typedef struct chain {
    int operations;
    bool sharded;
} chain;

static chain chain_of(const ms_node *node)
{
    switch ((int)node->op) {
    case MS_OP_NORM: /* cast, square, mean, add, root, product, cast, weight */
        return (chain){8, true};
    case MS_OP_NORM_GRAD: /* weight 3, casts 2, product 3, root 3, mean 2, square 3 */
        return (chain){16, true};
    case MS_OP_GROUP_NORM:
        return (chain){9, false};
    case MS_OP_GROUP_NORM_GRAD:
        return (chain){17, false};
    case MS_OP_ROTARY: /* cast, complex product, cast */
        return (chain){3, false};
    case MS_OP_ACTIVATION:
        return (chain){node->num_in == 2 ? 2 : 1, false};
    case MS_OP_ACTIVATION_GRAD: /* two products, and the gradient of the function */
        return (chain){node->num_in == 3 ? 3 : 1, false};
    case MS_OP_ROUTE: /* cast, scores, top-k, gather, sum, division, counts, sort */
    case MS_OP_ROUTE_GRAD:
        return (chain){8, false};
    case MS_OP_LOSS_GRAD: /* loss, log-softmax, cast */
        return (chain){3, false};
    case MS_OP_EINSUM:
    case MS_OP_EMBED:
    case MS_OP_EMBED_GRAD:
        return (chain){1, true};
    default:
        return (chain){1, false};
    }
}

ms_host_operations ms_node_host_operations(const ms_node *node, int kernels,
                                           bool is_split)
{
    chain own = chain_of(node);
    if (kernels == 0)
        return (ms_host_operations){0};
    int total = kernels - 1 + own.operations;
    return (ms_host_operations){total, is_split && own.sharded ? total : 0};
}
