/* Products of bf16 with operands rounded to FP8 first: layers' products with weights in
 * runs in fp8.
 *
 * The recipe is the hybrid one of Transformer Engine (NVIDIA, Transformer Engine
 * documentation, "Using FP8 with Transformer Engine"): activations and weights in e4m3,
 * gradients of activations in e5m2 (formats: Micikevicius et al. 2022, "FP8 Formats for
 * Deep Learning"), each operand by one scale of its own largest element ("current
 * scaling"); sums in fp32, in the tensor cores' fewer digits in forward products.
 * Embedding, head, router and everything that is no product stay as in bf16. */
#ifndef MS_EXEC_CUDA_FP8_H
#define MS_EXEC_CUDA_FP8_H

#include "exec/scalar.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda_call.h"
/* Of a node whose products are made in FP8 where they can be; 0: of any other. */
ms_cuda_workspace ms_cuda_fp8_bytes;
/* The product of an EINSUM or GROUPED node, which the node's operands are given to as
 * they are. True: it was made in FP8, or failed (*status). False: nothing was done, as it
 * is none of a layer's weights, has fewer than 16 terms, a result whose rows are no
 * multiple of 16 elements or that is not at 16 bytes, or (experts with more rows than
 * balanced routing gives to all of the rank's) operands that are larger than the
 * workspace, or as the library has no algorithm for it (*call->lacks_fp8); then it is one
 * of bf16. `swapped`: the product's a is the node's second operand. */
bool ms_cuda_fp8_product(const ms_cuda_call *call, const ms_cuda_product *product,
                         bool swapped, ms_status *status);
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Terms of a product in FP8 are padded to a multiple of this with zeros. */
#define MS_CUDA_FP8_TERMS 16

/* A matrix (rows, cols) of bf16, row-major without gaps, on the device. */
typedef struct ms_cuda_fp8_matrix {
    const void *x;
    long rows, cols;
    ms_scalar format; /* that it becomes: MS_SCALAR_E4M3 or MS_SCALAR_E5M2 */
    bool transpose;   /* it becomes (cols, rows) */
    void *to; /* rows as it becomes, padded to MS_CUDA_FP8_TERMS; 16-byte aligned */
} ms_cuda_fp8_matrix;

/* On the device, of two matrices: what elements are multiplied by before they are
 * rounded, and what they are to be multiplied by after. */
typedef struct ms_cuda_fp8_scales {
    float to_fp8[2], from_fp8[2];
} ms_cuda_fp8_scales;

#define MS_CUDA_FP8_PARTS 512 /* of a matrix */
/* Of `parts` below. */
#define MS_CUDA_FP8_PART_BYTES (2 * MS_CUDA_FP8_PARTS * sizeof(unsigned))

/* to_fp8 = F / max |x| and from_fp8 = max |x| / F, with F the largest number of the
 * format; max |x| is at least 2^-100. An infinity or NaN in x makes from_fp8 one, so that
 * every sum of the product is one too. Neither matrix is empty. The same numbers whatever
 * the order of threads. */
void ms_cuda_fp8_find_scales(ms_cuda_stream *stream, ms_cuda_fp8_scales *scales,
                             unsigned *parts, const ms_cuda_fp8_matrix matrices[2]);
/* to = x times matrices' to_fp8[which], rounded to nearest even; what is larger than F
 * (by rounding of the scale) becomes F. */
void ms_cuda_fp8_cast(ms_cuda_stream *stream, const ms_cuda_fp8_matrix *matrix,
                      const ms_cuda_fp8_scales *scales, int which);

#ifdef __cplusplus
}
#endif

#endif
