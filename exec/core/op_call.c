#include "exec/core/op_call.h"

ms_scalar ms_tensor_scalar(const ms_program *program, int tensor,
                           const ms_precision *precision)
{
    const ms_tensor *t = &program->tensors[tensor];
    const double mask_bytes = 1.0;
    if (t->element_bytes == mask_bytes)
        return MS_SCALAR_BYTE;
    if (t->role == MS_ROLE_WEIGHT_GRADIENT)
        return precision->gradient;
    return t->element_bytes == program->compute_bytes ? precision->real
                                                      : precision->statistic;
}
