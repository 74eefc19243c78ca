#include "exec/cpu/quantize.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

const ms_narrow ms_narrow_e4m3 = {3, 7, 448.0F}, ms_narrow_e5m2 = {2, 15, 57344.0F},
                ms_narrow_e2m1 = {1, 1, 6.0F};

/* ---- elements ---- */

float ms_narrow_nearest(const ms_narrow *format, float x)
{
    enum {
        FRACTION_BITS = 23,
        BIAS = 127
    };
    float size = fabsf(x), unit;
    uint32_t bits;
    if (isnan(x) || size >= format->largest)
        return isnan(x) ? x : copysignf(format->largest, x);
    memcpy(&bits, &size, sizeof bits);
    uint32_t exponent = bits >> FRACTION_BITS;
    uint32_t least = (uint32_t)(BIAS + 1 - format->bias);
    exponent = exponent < least ? least : exponent; /* Subnormal numbers share one. */
    /* Adding a number whose last digit is the format's rounds to that digit. */
    bits = (exponent + (uint32_t)(FRACTION_BITS - format->fraction_bits))
           << FRACTION_BITS;
    memcpy(&unit, &bits, sizeof unit);
    return copysignf((size + unit) - unit, x);
}

static float larger_size(float largest, float x)
{
    float size = fabsf(x);
    return size <= largest || isnan(largest) ? largest : size;
}

float ms_largest_of(const ms_product_operand *m)
{
    float largest = 0.0F;
    for (long row = 0; row < m->rows; row++)
        for (long term = 0; term < m->terms; term++)
            largest =
                larger_size(largest, m->x[row * m->row_stride + term * m->term_stride]);
    return largest;
}

/* ---- scales ---- */

/* Factors before and after rounding. */
typedef struct factors {
    float to, from;
} factors;

/* Factors of a block with largest size `largest`, of a matrix with `of_matrix`. */
typedef factors find_factors(const ms_narrow *format, float largest, float of_matrix);

static float not_too_small(float largest)
{
    const float least = 0x1p-100F; /* so that its inverse is finite */
    return largest < least ? least : largest;
}

/* Greatest power of 2 that is not above x. */
static float power_of_2(float x)
{
    int exponent;
    frexpf(x, &exponent);
    return ldexpf(1.0F, exponent - 1);
}

static factors quotient(const ms_narrow *format, float largest, float of_matrix)
{
    (void)of_matrix;
    largest = not_too_small(largest);
    return (factors){format->largest / largest, largest / format->largest};
}

static factors power_of_2_quotient(const ms_narrow *format, float largest,
                                   float of_matrix)
{
    float to = power_of_2(quotient(format, largest, of_matrix).to);
    return (factors){to, 1.0F / to};
}

static factors shared_exponent(const ms_narrow *format, float largest, float of_matrix)
{
    (void)of_matrix;
    float from = power_of_2(not_too_small(largest)) / power_of_2(format->largest);
    return (factors){1.0F / from, from};
}

static factors two_levels(const ms_narrow *format, float largest, float of_matrix)
{
    float to = format->largest * ms_narrow_e4m3.largest / not_too_small(of_matrix);
    float scale = ms_narrow_nearest(&ms_narrow_e4m3, largest / format->largest * to);
    return scale > 0.0F ? (factors){to / scale, scale / to} : (factors){0.0F, 0.0F};
}

/* ---- recipes ---- */

#define ALL LONG_MAX

typedef struct rule {
    const ms_narrow *format, *of_gradients;
    long terms;             /* size of a block along the sum */
    long rows, weight_rows; /* sizes of a block, and of a weight's, across it */
    find_factors *find;
} rule;

static const rule *rule_of(ms_recipe recipe)
{
    static const rule rules[MS_NUM_RECIPES] = {
        [MS_RECIPE_DELAYED] = {&ms_narrow_e4m3, &ms_narrow_e5m2, ALL, ALL, ALL, quotient},
        [MS_RECIPE_TENSORWISE] = {&ms_narrow_e4m3, &ms_narrow_e5m2, ALL, ALL, ALL,
                                  quotient},
        [MS_RECIPE_ROWWISE] = {&ms_narrow_e4m3, &ms_narrow_e4m3, ALL, 1, 1,
                               power_of_2_quotient},
        [MS_RECIPE_BLOCKWISE] = {&ms_narrow_e4m3, &ms_narrow_e4m3, 128, 1, 128,
                                 power_of_2_quotient},
        [MS_RECIPE_MXFP8] = {&ms_narrow_e4m3, &ms_narrow_e4m3, 32, 1, 1, shared_exponent},
        [MS_RECIPE_NVFP4] = {&ms_narrow_e2m1, &ms_narrow_e2m1, 16, 1, 16, two_levels},
    };
    assert(recipe < MS_NUM_RECIPES && rules[recipe].find != NULL);
    return &rules[recipe];
}

const ms_narrow *ms_quantized_format(ms_recipe recipe, ms_operand operand)
{
    const rule *how = rule_of(recipe);
    return operand == MS_OPERAND_GRADIENT ? how->of_gradients : how->format;
}

/* The part of a matrix from (row, term) on, of at most rows x terms. */
static ms_product_operand block_at(const ms_product_operand *m, long row, long term,
                                   long rows, long terms)
{
    ms_product_operand block = *m;
    block.x += row * m->row_stride + term * m->term_stride;
    block.rows = m->rows - row < rows ? m->rows - row : rows;
    block.terms = m->terms - term < terms ? m->terms - term : terms;
    return block;
}

static void round_block(const ms_narrow *format, factors by, const ms_product_operand *m)
{
    for (long row = 0; row < m->rows; row++) {
        for (long term = 0; term < m->terms; term++) {
            float *x = &m->x[row * m->row_stride + term * m->term_stride];
            *x = ms_narrow_nearest(format, *x * by.to) * by.from;
        }
    }
}

void ms_quantize(ms_recipe recipe, ms_operand operand, float largest,
                 const ms_product_operand *m)
{
    const rule *how = rule_of(recipe);
    const ms_narrow *format = ms_quantized_format(recipe, operand);
    long rows = operand == MS_OPERAND_WEIGHT ? how->weight_rows : how->rows;
    float of_matrix = how->find == two_levels ? ms_largest_of(m) : 0.0F;
    ms_product_operand block = *m;
    for (long row = 0; row < m->rows; row += block.rows) {
        for (long term = 0; term < m->terms; term += block.terms) {
            block = block_at(m, row, term, rows, how->terms);
            float own = ms_largest_of(&block);
            factors by = how->find(format, largest > 0.0F ? largest : own, of_matrix);
            if (!isfinite(own) || !isfinite(of_matrix))
                by.to = NAN;
            round_block(format, by, &block);
        }
    }
}
