/* What one rank computes for its part of an einsum: FLOP and seconds from the local sizes
 * of the letters. */
#ifndef MS_COSTMODEL_RESHARD_EINSUM_COST_H
#define MS_COSTMODEL_RESHARD_EINSUM_COST_H

#include "costmodel/cost/kernel_cost.h"
#include "costmodel/tensor/einsum.h"

/* Sizes of letters, indexed by the letter. */
typedef struct ms_letter_sizes {
    double of['z' + 1];
} ms_letter_sizes;

/* FLOP of the products (a multiply-add is 2), two operands at a time in the order that
 * needs the fewest (the optimal path of numpy.einsum_path, without a limit on memory);
 * the first of equal ones. A product keeps the letters that the output or another operand
 * has. Letters of one operand that nothing else has are summed before its product; sums,
 * broadcasts and factors that are one number count no FLOP. */
double ms_einsum_flop(const ms_einsum *einsum, const ms_letter_sizes *sizes);

/* Seconds in the same order: products that contract something by ms_gemm_s (letters of
 * both operands and the result are its batch), products that do not, sums, transposes and
 * broadcasts by ms_stream_s, each reading its operands and writing its result once. No
 * fusion between them. 0 when the rank has no elements. */
double ms_einsum_s(const ms_pricer *pricer, const ms_einsum *einsum,
                   const ms_letter_sizes *sizes, double element_bytes);

#endif
