/* FLOP and seconds of one rank's part of an einsum, from the local sizes of letters. */
#ifndef MS_COSTMODEL_RESHARD_EINSUM_COST_H
#define MS_COSTMODEL_RESHARD_EINSUM_COST_H

#include "costmodel/cost/kernel_cost.h"
#include "costmodel/tensor/einsum.h"

typedef struct ms_letter_sizes {
    double of['z' + 1];
} ms_letter_sizes;

/* FLOP of an einsum's products (a multiply-add is 2), two operands at a time in the first
 * order with the fewest (the optimal path of numpy.einsum_path, without a limit on
 * memory). A product keeps letters of the output and of other operands. Letters of one
 * operand alone are summed before; sums, broadcasts and scalars count no FLOP. */
double ms_einsum_flop(const ms_einsum *einsum, const ms_letter_sizes *sizes);

/* Seconds of an einsum in the order of ms_einsum_flop: products that contract letters by
 * ms_gemm_s, all other steps by ms_stream_s, each reading operands and writing its result
 * once, unfused. 0 for tensors without elements. */
double ms_einsum_s(const ms_pricer *pricer, const ms_einsum *einsum,
                   const ms_letter_sizes *sizes, double element_bytes);

#endif
