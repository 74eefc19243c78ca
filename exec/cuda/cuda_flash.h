/* Attention on tensor cores (FlashAttention-2, Dao 2023): bf16 with sums in fp32, for
 * widths 64 and 128. Scores stay in registers; results are merged into o and lse of
 * earlier blocks. Weights enter GEMMs as bf16, and o is bf16 between the blocks of a
 * ring: each adds a rounding of at most 2^-8 relative to its size. Results are bitwise
 * reproducible. Arguments are those of exec/cuda/cuda_attention_plain.h, with 16-byte aligned
 * pointers. */
#ifndef MS_EXEC_CUDA_CUDA_FLASH_H
#define MS_EXEC_CUDA_CUDA_FLASH_H

#include "exec/cuda/cuda_attention_plain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The smallest tile; padded query counts are multiples of the largest tile (PADDING). */
#define MS_CUDA_FLASH_LEAST_TILE 32
#define MS_CUDA_FLASH_PADDING    128

/* Whether the arguments are supported: bf16, equal widths of 64 or 128, alignment, no
 * stored probabilities. */
bool ms_cuda_flash_can(const ms_cuda_attention_args *args);

/* Workspace: two ints per LEAST_TILE of queries and of keys. */
void ms_cuda_flash(ms_cuda_stream *stream, const ms_cuda_attention_args *args);
/* Workspace: two floats per (b, n, padded s), then four ints per LEAST_TILE of queries
 * and of keys. */
void ms_cuda_flash_grad(ms_cuda_stream *stream, const ms_cuda_attention_args *args);

#ifdef __cplusplus
}
#endif

#endif
