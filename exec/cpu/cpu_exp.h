/* A branch-free exp, so that loops over it are vectorized. */
#ifndef MS_EXEC_CPU_CPU_EXP_H
#define MS_EXEC_CPU_CPU_EXP_H

#include "exec/core/real.h"

#include <math.h>
#include <string.h>

/* exp(x) = 2^n exp(r): n is the integer nearest to x / ln 2, r = x - n ln 2, and exp(r) a
 * polynomial (Cody and Waite 1980, "Software Manual for the Elementary Functions",
 * chapter 6; coefficients: fp32 Cephes expf.c, fp64 Taylor). Relative error below 9e-8
 * (fp32), 3e-16 (fp64). Results that are no normal numbers become 0 or infinity. */
#ifdef MS_REAL_IS_FP64
#define MS_EXP_SHIFT 6755399441055744.0 /* 1.5 * 2^52: x + this rounds x to an integer */
/* ln 2 without its last bits, which are 0 here: products with n are exact */
#define MS_EXP_LN2_HIGH 6.93147180369123816490e-01
#define MS_EXP_LN2_LOW  1.90821492927058770002e-10
#define MS_EXP_MANTISSA 52
#define MS_EXP_ONE      0x3ff0000000000000U
#define MS_EXP_SMALLEST (-708.0)
#define MS_EXP_LARGEST  709.0
#define MS_EXP_TERMS    12
static const double ms_exp_terms[MS_EXP_TERMS] = {
    1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
    1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
    1.0 / 120,        1.0 / 24,        1.0 / 6,        1.0 / 2};
#else
#define MS_EXP_SHIFT    12582912.0F /* 1.5 * 2^23: x + this rounds x to an integer */
#define MS_EXP_LN2_HIGH 0.693359375F
#define MS_EXP_LN2_LOW  (-2.12194440e-4F)
#define MS_EXP_MANTISSA 23
#define MS_EXP_ONE      0x3f800000U
#define MS_EXP_SMALLEST (-87.0F)
#define MS_EXP_LARGEST  88.0F
#define MS_EXP_TERMS    6
static const float ms_exp_terms[MS_EXP_TERMS] = {1.9875691500e-4F, 1.3981999507e-3F,
                                                 8.3334519073e-3F, 4.1665795894e-2F,
                                                 1.6666665459e-1F, 5.0000001201e-1F};
#endif

static inline ms_real ms_real_exp(ms_real x)
{
    ms_real shifted = x * (ms_real)1.44269504088896341 + MS_EXP_SHIFT;
    ms_real n = shifted - MS_EXP_SHIFT;
    ms_real r = (x - n * MS_EXP_LN2_HIGH) - n * MS_EXP_LN2_LOW;
    ms_real sum = ms_exp_terms[0];
    for (int i = 1; i < MS_EXP_TERMS; i++)
        sum = sum * r + ms_exp_terms[i];
    ms_real_bits bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << MS_EXP_MANTISSA) + MS_EXP_ONE;
    ms_real power;
    memcpy(&power, &bits, sizeof power);
    ms_real y = (1 + (r + r * r * sum)) * power;
    y = x < MS_EXP_SMALLEST ? 0 : y;
    return x > MS_EXP_LARGEST ? (ms_real)HUGE_VAL : y;
}

static inline ms_real ms_real_sigmoid(ms_real x)
{
    return 1 / (1 + ms_real_exp(-x));
}

#endif
