/* Matrix products and reductions of the fake GPU (tests/support/cuda_fake.h), on memory
 * that the program can read. */
#ifndef MS_TESTS_SUPPORT_CUDA_FAKE_NUMBERS_H
#define MS_TESTS_SUPPORT_CUDA_FAKE_NUMBERS_H

#include "exec/cuda/cuda_driver.h"

/* Element i of an array of a number type. */
double fake_number(ms_scalar scalar, const void *x, long i);
void fake_set_number(ms_scalar scalar, void *x, long i, double value);
void fake_run_product(const ms_cuda_gemm *product);
/* Bytes from the first to the last element of operand 0 (a), 1 (b) or 2 (c) of a
 * product. */
size_t fake_product_bytes(const ms_cuda_gemm *p, int operand);
/* Computes `to` (count): sum or maximum over all ranks' arrays, in the order of ranks. */
void fake_reduce(ms_scalar scalar, bool maximum, void *to, const void *const *parts,
                 int num_parts, long count);

#endif
