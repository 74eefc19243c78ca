/* Launch code of attention on GPUs: selects kernels and their arguments. A library's
 * kernels (ms_cuda_driver.attention) come first where ms_cuda_call.attention asks for
 * them and they have what is needed. Of the own kernels, those for tensor cores
 * (exec/cuda/cuda_flash.h) are used if types, widths and alignment allow it and no
 * probabilities are stored, otherwise the kernels of exec/cuda/cuda_attention_plain.h. */
#ifndef MS_EXEC_CUDA_CUDA_ATTENTION_H
#define MS_EXEC_CUDA_CUDA_ATTENTION_H

#include "exec/cuda/cuda_call.h"

ms_cuda_op ms_cuda_attention, ms_cuda_attention_grad;
/* workspace of attention, forward or backward, also by blocks of keys */
ms_cuda_workspace ms_cuda_attention_workspace;

/* Attention over one block of keys, forward and backward, as exec/core/arrays.h defines
 * (ms_array_ops). call->op is block->call. */
ms_status ms_cuda_attention_block(const ms_cuda_call *call,
                                  const ms_attention_block *block);
ms_status ms_cuda_attention_block_grad(const ms_cuda_call *call,
                                       const ms_attention_block *block);

#endif
