/* Rounding of matrices to the 8- and 4-bit numbers of a recipe and back to fp32: the
 * operands that products of fp8 and fp4 runs on CPUs multiply. docs/formulas 12.10.1. */
#ifndef MS_EXEC_CPU_QUANTIZE_H
#define MS_EXEC_CPU_QUANTIZE_H

#include "exec/core/op_call.h"

/* Format of small numbers with a sign, an exponent and a fraction. Sources: Micikevicius
 * et al. 2022, "FP8 Formats for Deep Learning", table 1 (e4m3, e5m2); OCP Microscaling
 * Formats v1.0, section 5.3.3 (e2m1). */
typedef struct ms_narrow {
    int fraction_bits, bias;
    float largest; /* largest finite number */
} ms_narrow;
extern const ms_narrow ms_narrow_e4m3, ms_narrow_e5m2, ms_narrow_e2m1;

/* The number of a format nearest to x, ties to even; beyond its largest number, that
 * one. NaN stays. */
float ms_narrow_nearest(const ms_narrow *format, float x);

typedef enum ms_operand {
    MS_OPERAND_ACTIVATION,
    MS_OPERAND_WEIGHT,
    MS_OPERAND_GRADIENT, /* an activation's */
    MS_NUM_OPERANDS
} ms_operand;

/* Format of the elements of an operand. */
const ms_narrow *ms_quantized_format(ms_recipe recipe, ms_operand operand);

/* An operand of a matrix product: rows x terms, the sum of the product going along the
 * terms. Strides are in elements. */
typedef struct ms_product_operand {
    float *x;
    long rows, terms;
    long row_stride, term_stride;
} ms_product_operand;

/* Largest |x|; NaN if an element is NaN. */
float ms_largest_of(const ms_product_operand *m);

/* Rounds each element to the recipe's format under the scale of its block, and
 * multiplies it by that scale again. Blocks, of rows x terms, and scales:
 * - delayed, tensorwise: the matrix; F / M, with F the format's largest number and M the
 *   largest |x|, or `largest` if that is above 0 (delayed: of earlier steps)
 * - rowwise: a row; the power of 2 that is F / M or the next smaller one (torchao,
 *   float8/config.py, round_scales_to_power_of_2)
 * - blockwise: 1 x 128, of weights 128 x 128 (DeepSeek-V3, arXiv 2412.19437, section
 *   3.3.2); a power of 2 as above (Transformer Engine, Float8BlockScaling)
 * - mxfp8: 1 x 32; the power of 2 with floor(log2 M) = floor(log2 F) (OCP Microscaling
 *   Formats v1.0, section 6.3), so that elements above F become F
 * - nvfp4: 1 x 16, of weights 16 x 16; an e4m3 number times one fp32 scale per matrix
 *   (arXiv 2509.25149, appendix C), without its Hadamard transforms and stochastic
 *   rounding.
 * M is at least 2^-100. Blocks with an element that is not finite become NaN. */
void ms_quantize(ms_recipe recipe, ms_operand operand, float largest,
                 const ms_product_operand *m);

#endif
