/* GEMMs of einsums (EINSUM) and of experts (GROUPED) on a GPU, by the driver, with the
 * results of exec/cpu/cpu_product.c. Biases are in exec/cuda/cuda_sums.h. */
#ifndef MS_EXEC_CUDA_CUDA_GEMM_H
#define MS_EXEC_CUDA_CUDA_GEMM_H

#include "exec/cuda/cuda_call.h"

/* Computes one GEMM. If one operand's type is narrower, it is cast into the workspace; so
 * is the result if c is narrower than the product (fp32 gradients of router logits times
 * bf16 weights or activations). In fp8 runs, see exec/cuda/cuda_fp8.h. MS_EIO: the einsum
 * is no matrix product (in no layer program). */
ms_cuda_op ms_cuda_einsum;
ms_cuda_workspace ms_cuda_einsum_bytes;

/* Computes one GEMM per expert. Both operands have one type; if bf16, a weight's gradient
 * may be fp32. Workspace: ms_cuda_fp8_bytes. */
ms_cuda_op ms_cuda_grouped;

#endif
