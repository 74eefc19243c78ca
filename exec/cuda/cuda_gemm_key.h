/* Keys of caches: the properties that decide the algorithm of a GEMM. */
#ifndef MS_EXEC_CUDA_CUDA_GEMM_KEY_H
#define MS_EXEC_CUDA_CUDA_GEMM_KEY_H

#include "exec/cuda/cuda_driver.h"

/* GEMM properties (ms_cuda_gemm), compared and hashed as bytes. align_*: powers of 2 in
 * bytes; type, type_b, result: ms_scalar. */
typedef struct ms_cuda_gemm_key {
    long m, n, k, ld_a, ld_b, ld_c, num_batch, stride_a, stride_b, stride_c;
    long align_a, align_b, align_c;
    long type, type_b, result, transpose_a, transpose_b, add, fast;
} ms_cuda_gemm_key;

/* The key of a GEMM. A size that varies is rounded up (ms_cuda_gemm_bucket). */
ms_cuda_gemm_key ms_cuda_gemm_key_of(const ms_cuda_gemm *p);
size_t ms_cuda_gemm_key_hash(const ms_cuda_gemm_key *key);

/* The next multiple of 16 or, from 128 on, of an eighth of the power of 2 below `size`:
 * at most 15 rows or 12.5 % more. Sizes up to 65536 have 80 buckets. */
long ms_cuda_gemm_bucket(long size);

#endif
