/* GEMMs of bf16 operands quantized to FP8 first: the products of layers with their
 * weights in fp8 runs.
 *
 * The recipe is the hybrid one of Transformer Engine (NVIDIA, Transformer Engine
 * documentation, "Using FP8 with Transformer Engine"): activations and weights in e4m3,
 * gradients of activations in e5m2 (formats: Micikevicius et al. 2022, "FP8 Formats for
 * Deep Learning"), one scale per operand from its own largest element ("current
 * scaling"); sums in fp32, with the reduced precision of tensor cores in forward
 * products. Embedding, head, router and all other operations stay in bf16. */
#ifndef MS_EXEC_CUDA_CUDA_FP8_H
#define MS_EXEC_CUDA_CUDA_FP8_H

#include "exec/core/scalar.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda/cuda_call.h"
/* Workspace of a node whose GEMMs may be computed in FP8; 0 for other nodes. */
ms_cuda_workspace ms_cuda_fp8_bytes;
/* Computes a GEMM of an EINSUM or GROUPED node in FP8 from its bf16 operands. True:
 * computed, or failed (*status). False: nothing was done, and the caller computes it in
 * bf16. Reasons: the GEMM has no layer weight, or fewer than 16 terms (k); its result's
 * rows are no multiple of 16 elements, or not 16-byte aligned; its operands exceed the
 * workspace (an expert has more rows than balanced routing gives to all of the rank's
 * experts); or the library has no algorithm (sets *call->lacks_fp8). `swapped`:
 * product->a is the node's second operand. */
bool ms_cuda_fp8_gemm(const ms_cuda_call *call, const ms_cuda_gemm *product, bool swapped,
                      ms_status *status);
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* The summed dimension of FP8 GEMMs is zero-padded to a multiple of this. */
#define MS_CUDA_FP8_TERMS 16

/* A bf16 matrix (rows, cols) in device memory, row-major without gaps; its FP8 copy. */
typedef struct ms_cuda_fp8_matrix {
    const void *x;
    long rows, cols;
    ms_scalar format; /* target format: MS_SCALAR_E4M3 or MS_SCALAR_E5M2 */
    bool transpose;   /* whether the copy is transposed: (cols, rows) */
    void *to; /* the copy, its rows padded to MS_CUDA_FP8_TERMS; 16-byte aligned */
} ms_cuda_fp8_matrix;

/* Scales of two matrices, in device memory: to_fp8 multiplies elements before they are
 * rounded to FP8, from_fp8 multiplies FP8 values to undo that. */
typedef struct ms_cuda_fp8_scales {
    float to_fp8[2], from_fp8[2];
} ms_cuda_fp8_scales;

#define MS_CUDA_FP8_PARTS 512 /* largest number of partial maxima of a matrix */
/* Bytes of the `parts` argument of ms_cuda_fp8_find_scales. */
#define MS_CUDA_FP8_PART_BYTES (2 * MS_CUDA_FP8_PARTS * sizeof(unsigned))

/* Sets to_fp8 = F / M and from_fp8 = M / F per matrix: F is the format's largest number,
 * M the matrix's largest |x|, at least 2^-100. Infinity or NaN in x makes from_fp8
 * infinite or NaN, and so all sums of the GEMM. Matrices are not empty. Results are
 * reproducible. */
void ms_cuda_fp8_find_scales(ms_cuda_stream *stream, ms_cuda_fp8_scales *scales,
                             unsigned *parts, const ms_cuda_fp8_matrix matrices[2]);
/* Writes matrix->x times to_fp8[which], rounded to the nearest FP8, ties to even; larger
 * numbers than the format has become its largest. */
void ms_cuda_fp8_cast(ms_cuda_stream *stream, const ms_cuda_fp8_matrix *matrix,
                      const ms_cuda_fp8_scales *scales, int which);

#ifdef __cplusplus
}
#endif

#endif
