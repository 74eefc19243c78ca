/* Attention on tensor cores (FlashAttention-2, Dao 2023): bf16 with sums in fp32, for
 * widths 64 and 128. Scores stay in registers; o and lse of earlier blocks are merged
 * into. Weights go into products as bf16, and o is bf16 between the blocks of a ring:
 * each adds a rounding of at most 2^-8 of its size. Same numbers at every launch.
 * Arguments as of exec/cuda_attention_plain.h, pointers 16-byte aligned. */
#ifndef MS_EXEC_CUDA_FLASH_H
#define MS_EXEC_CUDA_FLASH_H

#include "exec/cuda_attention_plain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of all tiles the smallest; queries are counted in multiples of the largest where they
 * are padded. */
#define MS_CUDA_FLASH_LEAST_TILE 32
#define MS_CUDA_FLASH_PADDING    128

/* Type, equal widths of 64 or 128, alignment; no stored probabilities. */
bool ms_cuda_flash_can(const ms_cuda_attention_args *args);

/* Workspace: two ints for each LEAST_TILE of queries and of keys. */
void ms_cuda_flash(ms_cuda_stream *stream, const ms_cuda_attention_args *args);
/* Workspace: two floats for each (b, n, s padded), then four ints for each LEAST_TILE of
 * queries and of keys. */
void ms_cuda_flash_grad(ms_cuda_stream *stream, const ms_cuda_attention_args *args);

#ifdef __cplusplus
}
#endif

#endif
