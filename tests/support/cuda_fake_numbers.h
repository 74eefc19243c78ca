/* Matrix products and reductions of the fake device, on memory that the program can read. */
#ifndef MS_TESTS_SUPPORT_CUDA_FAKE_NUMBERS_H
#define MS_TESTS_SUPPORT_CUDA_FAKE_NUMBERS_H

#include "exec/cuda/cuda_driver.h"

/* Element i of an array. */
double fake_number(ms_scalar scalar, const void *x, long i);
void fake_set_number(ms_scalar scalar, void *x, long i, double value);
void fake_run_product(const ms_cuda_gemm *product);
/* Elements of an operand from its first to its last. */
size_t fake_product_bytes(const ms_cuda_gemm *p, int operand);
/* to (count) = sum or maximum of the ranks' parts, in their order. */
void fake_reduce(ms_scalar scalar, bool maximum, void *to, const void *const *parts,
                 int num_parts, long count);

#endif
