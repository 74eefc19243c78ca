#include "exec/cuda/cuda_gemm_key.h"

#include "base/hash.h"

#include <stdint.h>

#define MAX_ALIGNMENT   256
#define LEAST_STEP      16
#define STEPS_AN_OCTAVE 8

long ms_cuda_gemm_bucket(long size)
{
    long step = LEAST_STEP;
    while (2 * STEPS_AN_OCTAVE * step <= size)
        step *= 2;
    return (size + step - 1) / step * step;
}

size_t ms_cuda_gemm_key_hash(const ms_cuda_gemm_key *key)
{
    size_t hash = ms_hash_bytes(key, sizeof *key);
    return hash ^ hash >> 32;
}

/* Largest power of 2 up to 256 that divides the address and, in batches, the stride. */
static long alignment(const void *x, long stride, long num_batch, ms_scalar scalar)
{
    uintptr_t bits = (uintptr_t)x | MAX_ALIGNMENT;
    if (num_batch > 1)
        bits |= (uintptr_t)stride * ms_scalar_bytes(scalar);
    return (long)(bits & (~bits + 1));
}

static long size_in_key(const ms_cuda_gemm *p, ms_cuda_gemm_size which, long size)
{
    return p->varies == which ? ms_cuda_gemm_bucket(size) : size;
}

ms_cuda_gemm_key ms_cuda_gemm_key_of(const ms_cuda_gemm *p)
{
    long num_batch = p->num_batch > 1 ? p->num_batch : 1;
    bool has_strides = num_batch > 1, is_fp8 = ms_scalar_is_fp8(p->type);
    ms_scalar type_b = is_fp8 ? p->type_b : p->type;
    return (ms_cuda_gemm_key){.m = size_in_key(p, MS_CUDA_GEMM_M, p->m),
                              .n = size_in_key(p, MS_CUDA_GEMM_N, p->n),
                              .k = size_in_key(p, MS_CUDA_GEMM_K, p->k),
                              .ld_a = p->ld_a,
                              .ld_b = p->ld_b,
                              .ld_c = p->ld_c,
                              .num_batch = num_batch,
                              .stride_a = has_strides ? p->stride_a : 0,
                              .stride_b = has_strides ? p->stride_b : 0,
                              .stride_c = has_strides ? p->stride_c : 0,
                              .align_a = alignment(p->a, p->stride_a, num_batch, p->type),
                              .align_b = alignment(p->b, p->stride_b, num_batch, type_b),
                              .align_c =
                                  alignment(p->c, p->stride_c, num_batch, p->result),
                              .type = p->type,
                              .type_b = type_b,
                              .result = p->result,
                              .transpose_a = p->transpose_a,
                              .transpose_b = p->transpose_b,
                              .add = p->add,
                              .fast = is_fp8 && p->fast};
}
