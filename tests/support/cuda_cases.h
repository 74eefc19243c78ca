/* One operation by a kernel of a GPU (emulated) and by the CPU kernel in fp64 that it
 * must equal, on the same operands. */
#ifndef MS_TESTS_SUPPORT_CUDA_CASES_H
#define MS_TESTS_SUPPORT_CUDA_CASES_H

#include "base/rng.h"
#include "exec/cpu/kernels.h"
#include "exec/cuda/cuda_call.h"

/* What the numbers of an operand are (ms_precision). */
typedef enum ms_case_numbers {
    MS_CASE_REAL,
    MS_CASE_STATISTIC,
    MS_CASE_WEIGHT_GRADIENT, /* added to what is there */
    MS_CASE_MASK             /* bytes */
} ms_case_numbers;

/* A node made by hand. Operands are in fp64; fields may be changed before it runs. */
typedef struct ms_cuda_case {
    ms_arena *arena;
    ms_rng rng;
    ms_model model;
    ms_program program;
    ms_tensor tensors[2 * MS_MAX_OPERANDS];
    ms_node node;
    ms_batch batch;
    ms_routing routing;
    ms_op_call call; /* its operands' data are doubles, of masks bytes */
} ms_cuda_case;

/* What computes the node on a GPU. */
typedef struct ms_cuda_kernel {
    ms_cuda_op *op;
    ms_cuda_workspace *workspace; /* NULL: none */
    /* In runs in bf16: how often the kernel rounds to bf16 on its way to the result,
     * which is rounded once more. */
    double num_roundings;
    /* In its place, where the CPU has no kernel of the operation, or another one is to be
     * compared with. */
    ms_kernel *reference;
} ms_cuda_kernel;

ms_cuda_case *ms_cuda_case_make(ms_arena *arena, ms_op op, uint64_t seed);
/* The next operand; shape "2 3 4". Numbers are uniform in -1 .. 1, all bits of fp64;
 * masks 0 and 1. */
ms_local *ms_cuda_case_in(ms_cuda_case *c, const char *dims, const char *shape,
                          ms_case_numbers numbers);
/* The next result. Set data to NULL for one that nobody wants. */
ms_local *ms_cuda_case_out(ms_cuda_case *c, const char *dims, const char *shape,
                           ms_case_numbers numbers);
static inline double *ms_cuda_case_values(const ms_local *operand)
{
    return operand->data;
}

/* In fp32, fp64 and bf16, each with three orders of threads; of two the results must have
 * equal bits, the third has addresses that are not aligned to vectors. Operands are
 * rounded to their types for both sides. Errors are at most, of the largest element: fp64
 * 1e-12 and fp32 1e-5, for sums of up to some thousand terms; in bf16 2^-8 of the element
 * beside it, half of its last bit, and as much of the largest for each rounding before.
 * Fails the test otherwise, with `label`. */
void ms_cuda_case_run(ms_cuda_case *c, const char *label, const ms_cuda_kernel *kernel);

/* The same for every node of the operation in programs of all small models
 * (tests/support/small_models.h). Returns how many there were. */
int ms_cuda_cases_of_programs(ms_arena *arena, ms_op op, const ms_cuda_kernel *kernel);

/* bf16 by integer arithmetic, to nearest even. */
double ms_case_from_bf16(unsigned short bits);
/* Numbers of a type in memory. */
void ms_case_store(ms_scalar scalar, void *to, const double *from, long count);
void ms_case_load(ms_scalar scalar, double *to, const void *from, long count);

#endif
