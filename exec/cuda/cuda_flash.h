/* Attention on tensor cores (FlashAttention-2, Dao 2023): bf16 with sums in fp32, for
 * widths 64 and 128. Scores stay in registers; results are merged into o and lse of
 * earlier blocks of keys. Probabilities enter products as bf16, which adds a rounding of
 * at most 2^-8 relative to their size. Results are bitwise reproducible. Arguments are
 * those of exec/cuda/cuda_attention_plain.h, with 16-byte aligned pointers. */
#ifndef MS_EXEC_CUDA_CUDA_FLASH_H
#define MS_EXEC_CUDA_CUDA_FLASH_H

#include "exec/cuda/cuda_attention_plain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of the smallest tile, and the multiple to which query counts are padded. */
#define MS_CUDA_FLASH_LEAST_TILE 32
#define MS_CUDA_FLASH_PADDING    128

/* Whether tensor cores can run the attention: bf16, equal widths of 64 or 128, alignment,
 * no stored probabilities, no soft cap, no ALiBi. */
bool ms_cuda_flash_can(const ms_cuda_attention_args *args);

/* Forward attention. Workspace: two ints per MS_CUDA_FLASH_LEAST_TILE queries or keys. */
void ms_cuda_flash(ms_cuda_stream *stream, const ms_cuda_attention_args *args);
/* Backward attention. Workspace: two floats per sequence, head and query (their number
 * padded), then four ints per MS_CUDA_FLASH_LEAST_TILE queries or keys. */
void ms_cuda_flash_grad(ms_cuda_stream *stream, const ms_cuda_attention_args *args);

#ifdef __cplusplus
}
#endif

#endif
