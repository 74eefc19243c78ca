/* An einsum executed by its definition: a loop over all letters. The reference for
 * sharded executions, and what every rank of them does. */
#ifndef MS_TESTS_SUPPORT_DENSE_EINSUM_H
#define MS_TESTS_SUPPORT_DENSE_EINSUM_H

#include "costmodel/tensor/einsum.h"

/* size is indexed by the letter; arrays are row-major in the order of their letters.
 * Letters that only the output has broadcast. Any size may be 0. `out` is overwritten. */
void ms_dense_einsum(const ms_einsum *einsum, const long *size,
                     const double *const *inputs, double *out);

#endif
