/* GEMMs of einsums (EINSUM) and of experts (GROUPED) on a GPU, by the driver, with the
 * results of exec/cpu/cpu_product.c. Biases are in exec/cuda/cuda_sums.h. */
#ifndef MS_EXEC_CUDA_CUDA_GEMM_H
#define MS_EXEC_CUDA_CUDA_GEMM_H

#include "exec/cuda/cuda_call.h"

/* Multiplies operands of different types in the wider one: the narrow operand is cast
 * into the workspace, and so is the result if it is narrower than the sums (fp32
 * gradients of router logits times bf16 weights or activations). In fp8 runs operands
 * pass through the workspace, too (exec/cuda/cuda_fp8.h). MS_EIO: the einsum is no matrix
 * product, which no layer program has. */
ms_cuda_op ms_cuda_einsum;
ms_cuda_workspace ms_cuda_einsum_bytes;

/* Computes one GEMM per expert. Operands have one type; a weight's gradient may be fp32
 * where operands are bf16. Workspace: ms_cuda_fp8_bytes. */
ms_cuda_op ms_cuda_grouped;

#endif
