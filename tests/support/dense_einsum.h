/* An einsum executed by its definition, a loop over all letters: the reference for
 * sharded executions, and the local computation of every rank in them. */
#ifndef MS_TESTS_SUPPORT_DENSE_EINSUM_H
#define MS_TESTS_SUPPORT_DENSE_EINSUM_H

#include "costmodel/tensor/einsum.h"

/* Computes `out`, which is overwritten. `size` is indexed by letter; arrays are row-major
 * in the order of their letters. Letters that only the output has are broadcast. Sizes
 * may be 0. */
void ms_dense_einsum(const ms_einsum *einsum, const long *size,
                     const double *const *inputs, double *out);

#endif
