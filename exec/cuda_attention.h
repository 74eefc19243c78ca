/* Launch code of attention on GPUs: which kernels run, with what. On tensor cores
 * (exec/cuda_flash.h) where types, widths and alignment allow it and no probabilities are
 * stored, otherwise plainly (exec/cuda_attention_plain.h). */
#ifndef MS_EXEC_CUDA_ATTENTION_H
#define MS_EXEC_CUDA_ATTENTION_H

#include "exec/cuda_call.h"

ms_cuda_op ms_cuda_attention, ms_cuda_attention_grad;
ms_cuda_workspace ms_cuda_attention_workspace; /* of both, blocks of a ring too */

/* As ms_array_ops says; call->op is block->call. */
ms_status ms_cuda_attention_block(const ms_cuda_call *call,
                                  const ms_attention_block *block);
ms_status ms_cuda_attention_block_grad(const ms_cuda_call *call,
                                       const ms_attention_block *block);

#endif
