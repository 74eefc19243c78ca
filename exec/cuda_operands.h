/* Operands of a call, for launch code. */
#ifndef MS_EXEC_CUDA_OPERANDS_H
#define MS_EXEC_CUDA_OPERANDS_H

#include "exec/cuda_call.h"

/* Length of the last dim. */
static inline long ms_cuda_last(const ms_local *x)
{
    return x->shape[x->num_dims - 1];
}

/* Elements before the last dim. */
static inline long ms_cuda_leading(const ms_local *x)
{
    long count = 1;
    for (int i = 0; i + 1 < x->num_dims; i++)
        count *= x->shape[i];
    return count;
}

/* Gradients of weights are added to what is there. */
static inline bool ms_cuda_is_added(const ms_op_call *op, int result)
{
    return op->program->tensors[op->node->out[result]].role == MS_ROLE_WEIGHT_GRADIENT;
}

#endif
