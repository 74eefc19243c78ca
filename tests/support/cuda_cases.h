/* Test cases of single operations: a GPU kernel (emulated) and the CPU kernel in fp64
 * must give equal results on the same operands. */
#ifndef MS_TESTS_SUPPORT_CUDA_CASES_H
#define MS_TESTS_SUPPORT_CUDA_CASES_H

#include "base/rng.h"
#include "exec/cpu/kernels.h"
#include "exec/cuda/cuda_call.h"

/* Kind of number of an operand, which decides its type (ms_precision). */
typedef enum ms_case_numbers {
    MS_CASE_REAL,
    MS_CASE_STATISTIC,
    /* gradient of a weight: the kernel adds its result to the values already there */
    MS_CASE_WEIGHT_GRADIENT,
    MS_CASE_MASK /* mask, stored as one byte per element */
} ms_case_numbers;

/* A hand-made node with fp64 operands; fields may be changed before it runs. */
typedef struct ms_cuda_case {
    ms_arena *arena;
    ms_rng rng;
    ms_model model;
    ms_program program;
    ms_tensor tensors[2 * MS_MAX_OPERANDS];
    ms_node node;
    ms_batch batch;
    ms_routing routing;
    ms_op_call call; /* call of the node: operand data are doubles, masks bytes */
} ms_cuda_case;

/* The GPU kernel of a node. */
typedef struct ms_cuda_kernel {
    ms_cuda_op *op;
    ms_cuda_workspace *workspace; /* NULL: needs no workspace */
    /* in bf16 runs: how many roundings to bf16 precede the result's own rounding */
    double num_roundings;
    /* not NULL: kernel to compare with instead of the CPU's kernel of the operation */
    ms_kernel *reference;
} ms_cuda_kernel;

ms_cuda_case *ms_cuda_case_make(ms_arena *arena, ms_op op, uint64_t seed);
/* Adds an operand, with shape as text ("2 3 4"). Numbers are uniform in -1 .. 1 with all
 * bits of fp64; masks are 0 or 1. */
ms_local *ms_cuda_case_in(ms_cuda_case *c, const char *dims, const char *shape,
                          ms_case_numbers numbers);
/* Adds a result. Its data may be set to NULL: the result is then not wanted. */
ms_local *ms_cuda_case_out(ms_cuda_case *c, const char *dims, const char *shape,
                           ms_case_numbers numbers);
static inline double *ms_cuda_case_values(const ms_local *operand)
{
    return operand->data;
}

/* Runs a case in fp32, fp64 and bf16, with operands rounded to their types, each with
 * three orders of threads: two must give equal bits, the third has operands not aligned
 * to vectors. Greatest error relative to the largest element: 1e-12 in fp64 and 1e-5 in
 * fp32, for sums of up to some thousand terms; in bf16 2^-8 of the element itself (half
 * of its last bit), and 2^-8 of the largest for each earlier rounding. Otherwise fails
 * the test, printing `label`. */
void ms_cuda_case_run(ms_cuda_case *c, const char *label, const ms_cuda_kernel *kernel);

/* Runs ms_cuda_case_run for every node of an operation in the programs of all small
 * models (tests/support/small_models.h). Returns the number of nodes. */
int ms_cuda_cases_of_programs(ms_arena *arena, ms_op op, const ms_cuda_kernel *kernel);

/* Value of a bf16 number. */
double ms_case_from_bf16(unsigned short bits);
/* Converts doubles to and from a number type in memory. */
void ms_case_store(ms_scalar scalar, void *to, const double *from, long count);
void ms_case_load(ms_scalar scalar, double *to, const void *from, long count);

#endif
