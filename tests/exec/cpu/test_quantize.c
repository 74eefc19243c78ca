/* Tests of rounding to 8 and 4 bits: exact values, a search through all codes, and the
 * blocks and scales of each recipe by their definition. */
#include "base/rng.h"
#include "exec/cpu/quantize.h"
#include "tests/support/fp8_numbers.h"
#include "tests/test.h"

#define NUM_NUMBERS TEST_CASES(200000, 20000)

/* ---- elements ---- */

/* Number of a format with the code `code` of its positive numbers, by its definition. */
static double value_of(const ms_narrow *format, unsigned code)
{
    static const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    if (format == &ms_narrow_e2m1)
        return e2m1[code];
    return ms_fp8_value(format == &ms_narrow_e4m3 ? MS_SCALAR_E4M3 : MS_SCALAR_E5M2,
                        code);
}

static unsigned largest_code(const ms_narrow *format)
{
    return format == &ms_narrow_e4m3 ? 0x7e : format == &ms_narrow_e5m2 ? 0x7b : 7;
}

/* The nearest number, found by looking at all; the one with the even code of two. */
static double nearest_of_all(const ms_narrow *format, double x)
{
    double best = 0, size = fabs(x);
    for (unsigned code = 0; code <= largest_code(format); code++) {
        double value = value_of(format, code);
        double nearer = fabs(size - best) - fabs(size - value);
        if (nearer > 0 || (nearer == 0 && code % 2 == 0))
            best = value;
    }
    return copysign(best, x);
}

static void numbers_known_exactly(void **state)
{
    (void)state;
    static const struct {
        const ms_narrow *format;
        double x, want;
    } rows[] = {
        {&ms_narrow_e4m3, 1.0, 1.0},
        {&ms_narrow_e4m3, 17, 16}, /* ties */
        {&ms_narrow_e4m3, -19, -20},
        {&ms_narrow_e4m3, 0x1p-10, 0},
        {&ms_narrow_e4m3, 0x3p-10, 0x1p-8},
        {&ms_narrow_e4m3, 0x1.8p-10, 0x1p-9},
        {&ms_narrow_e4m3, 448, 448},
        {&ms_narrow_e4m3, 1e9, 448}, /* too large */
        {&ms_narrow_e4m3, -INFINITY, -448},
        {&ms_narrow_e5m2, 9, 8},
        {&ms_narrow_e5m2, 11, 12},
        {&ms_narrow_e5m2, 0x1p-17, 0},
        {&ms_narrow_e5m2, 0x1p-16, 0x1p-16},
        {&ms_narrow_e5m2, 6e4, 57344},
        {&ms_narrow_e2m1, 0.25, 0},
        {&ms_narrow_e2m1, 0.75, 1},
        {&ms_narrow_e2m1, -1.75, -2},
        {&ms_narrow_e2m1, 2.5, 2},
        {&ms_narrow_e2m1, 5, 4},
        {&ms_narrow_e2m1, 5.1, 6},
        {&ms_narrow_e2m1, 100, 6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ASSERT_NEAR((double)ms_narrow_nearest(rows[i].format, (float)rows[i].x),
                    rows[i].want, 0);
    assert_true(isnan(ms_narrow_nearest(&ms_narrow_e4m3, NAN)));
}

static void check_number(const ms_narrow *format, double x)
{
    double got = (double)ms_narrow_nearest(format, (float)x);
    if (got != nearest_of_all(format, (double)(float)x))
        fail_msg("%.9g becomes %.9g, nearest is %.9g", x, got, nearest_of_all(format, x));
}

static void numbers_are_the_nearest_of_all(void **state)
{
    (void)state;
    static const ms_narrow *const formats[] = {&ms_narrow_e4m3, &ms_narrow_e5m2,
                                               &ms_narrow_e2m1};
    ms_rng rng = ms_rng_seed(1);
    for (int f = 0; f < 3; f++) {
        for (unsigned code = 0; code < largest_code(formats[f]); code++) {
            double low = value_of(formats[f], code),
                   high = value_of(formats[f], code + 1);
            check_number(formats[f], low);
            check_number(formats[f], (low + high) / 2);
            check_number(formats[f], -high);
        }
        for (long i = 0; i < NUM_NUMBERS; i++) {
            double exponent = 40 * ms_rng_uniform(&rng) - 22;
            check_number(formats[f], (ms_rng_uniform(&rng) - 0.5) * exp2(exponent));
        }
    }
}

/* ---- blocks and scales ---- */

#define ROWS    150
#define TERMS   300
#define SAMPLED 97 /* one in so many elements is compared */

/* Normal-like numbers, a few of which are far larger than the rest. */
static void draw(ms_rng *rng, float *x, long count, double outlier)
{
    for (long i = 0; i < count; i++) {
        double sum = -2;
        for (int j = 0; j < 4; j++)
            sum += ms_rng_uniform(rng);
        x[i] = (float)(ms_rng_uniform(rng) < 2e-3 ? outlier * sum : sum);
    }
}

static bool is_first_not_above(double power, double x)
{
    return power <= x && 2 * power > x;
}

/* The greatest power of 2 that is not above x, found by doubling and halving. */
static double slow_power_of_2(double x)
{
    double power = 1;
    while (!is_first_not_above(power, x))
        power *= power > x ? 0.5 : 2;
    return power;
}

/* Largest size in the block of an element, whose sides are `rows` and `terms`. */
static float largest_in_block(const float *x, long row, long term, long rows, long terms)
{
    float largest = 0;
    for (long i = row / rows * rows; i < ROWS && i < (row / rows + 1) * rows; i++)
        for (long j = term / terms * terms; j < TERMS && j < (term / terms + 1) * terms;
             j++)
            largest = fmaxf(largest, fabsf(x[i * TERMS + j]));
    return largest;
}

/* Element (row, term) as a recipe leaves it. */
static double slowly(ms_recipe recipe, ms_operand operand, const float *x, long row,
                     long term)
{
    static const long terms[MS_NUM_RECIPES] = {0, 1000, 1000, 1000, 128, 32, 16};
    bool is_weight = operand == MS_OPERAND_WEIGHT;
    bool by_tensor = recipe == MS_RECIPE_DELAYED || recipe == MS_RECIPE_TENSORWISE;
    long rows = by_tensor                                    ? 1000
                : recipe == MS_RECIPE_BLOCKWISE && is_weight ? 128
                : recipe == MS_RECIPE_NVFP4 && is_weight     ? 16
                                                             : 1;
    const ms_narrow *format = recipe == MS_RECIPE_NVFP4 ? &ms_narrow_e2m1
                              : by_tensor && operand == MS_OPERAND_GRADIENT
                                  ? &ms_narrow_e5m2
                                  : &ms_narrow_e4m3;
    float largest = largest_in_block(x, row, term, rows, terms[recipe]);
    if (largest == 0)
        return 0;
    float f = (float)value_of(format, largest_code(format));
    float to = f / largest, from = largest / f;
    if (recipe == MS_RECIPE_ROWWISE || recipe == MS_RECIPE_BLOCKWISE) {
        to = (float)slow_power_of_2((double)to);
        from = 1 / to;
    } else if (recipe == MS_RECIPE_MXFP8) {
        to = (float)(256 / slow_power_of_2((double)largest));
        from = 1 / to;
    } else if (recipe == MS_RECIPE_NVFP4) {
        float of_tensor = 6.0F * 448.0F / largest_in_block(x, 0, 0, 1000, 1000);
        float scale =
            (float)nearest_of_all(&ms_narrow_e4m3, (double)(largest / 6.0F * of_tensor));
        to = scale > 0 ? of_tensor / scale : 0;
        from = scale / of_tensor;
    }
    float wide = x[row * TERMS + term] * to;
    return (double)((float)nearest_of_all(format, (double)wide) * from);
}

/* Quantizes a matrix that is stored by rows, or by terms, and compares all elements. */
static void check_matrix(ms_recipe recipe, ms_operand operand, const float *x,
                         bool by_terms)
{
    static float stored[ROWS * TERMS];
    ms_product_operand m = {.x = stored,
                            .rows = ROWS,
                            .terms = TERMS,
                            .row_stride = by_terms ? 1 : TERMS,
                            .term_stride = by_terms ? ROWS : 1};
    for (long i = 0; i < ROWS * TERMS; i++)
        stored[i / TERMS * m.row_stride + i % TERMS * m.term_stride] = x[i];
    ms_quantize(recipe, operand, 0, &m);
    for (long i = 0; i < ROWS * TERMS; i += SAMPLED) {
        float got = stored[i / TERMS * m.row_stride + i % TERMS * m.term_stride];
        double want = slowly(recipe, operand, x, i / TERMS, i % TERMS);
        if ((double)got != want)
            fail_msg("%s, operand %d: %.9g at (%ld, %ld) becomes %.9g, not %.9g",
                     ms_recipe_names[recipe], (int)operand, (double)x[i], i / TERMS,
                     i % TERMS, (double)got, want);
    }
}

static void blocks_have_their_own_scales(void **state)
{
    (void)state;
    static float x[ROWS * TERMS];
    ms_rng rng = ms_rng_seed(2);
    draw(&rng, x, ROWS * TERMS, 1e3);
    for (long i = 0; i < 64; i++)
        x[i] = 0; /* blocks without a largest element */
    for (int recipe = MS_RECIPE_DELAYED; recipe < MS_NUM_RECIPES; recipe++) {
        for (int operand = 0; operand < MS_NUM_OPERANDS; operand++) {
            check_matrix((ms_recipe)recipe, (ms_operand)operand, x, false);
            check_matrix((ms_recipe)recipe, (ms_operand)operand, x, true);
        }
    }
}

/* Delayed scaling: elements above the largest of earlier steps become the largest. */
static void scales_of_earlier_steps_saturate(void **state)
{
    (void)state;
    float x[4] = {1, -2, 4, 64};
    ms_quantize(MS_RECIPE_DELAYED, MS_OPERAND_ACTIVATION, 4,
                &(ms_product_operand){x, 1, 4, 4, 1});
    ASSERT_NEAR((double)x[0], 1, 1e-6);
    ASSERT_NEAR((double)x[2], 4, 1e-6);
    ASSERT_NEAR((double)x[3], 4, 1e-6);
}

static void what_is_not_finite_stays_so(void **state)
{
    (void)state;
    const float bad[] = {NAN, INFINITY};
    for (int recipe = MS_RECIPE_DELAYED; recipe < MS_NUM_RECIPES; recipe++) {
        for (int i = 0; i < 2; i++) {
            float x[3] = {1, bad[i], 2};
            ms_quantize((ms_recipe)recipe, MS_OPERAND_GRADIENT, 0,
                        &(ms_product_operand){x, 1, 3, 3, 1});
            for (int j = 0; j < 3; j++)
                assert_true(isnan(x[j]));
        }
    }
    /* no element, no change */
    ms_quantize(MS_RECIPE_NVFP4, MS_OPERAND_WEIGHT, 0,
                &(ms_product_operand){NULL, 3, 0, 0, 1});
}

static void multiply(const float *a, const float *b, double *c)
{
    for (long i = 0; i < ROWS; i++) {
        for (long j = 0; j < ROWS; j++) {
            c[i * ROWS + j] = 0;
            for (long k = 0; k < TERMS; k++)
                c[i * ROWS + j] += (double)a[i * TERMS + k] * (double)b[j * TERMS + k];
        }
    }
}

/* Error of a product of quantized operands: norm of the error of each row of results,
 * relative to the row, in the mean over rows. */
static double error_of_product(ms_recipe recipe, const float *a, const float *b)
{
    static float qa[ROWS * TERMS], qb[ROWS * TERMS];
    static double got[ROWS * ROWS], want[ROWS * ROWS];
    double sum = 0;
    memcpy(qa, a, sizeof qa);
    memcpy(qb, b, sizeof qb);
    ms_quantize(recipe, MS_OPERAND_ACTIVATION, 0,
                &(ms_product_operand){qa, ROWS, TERMS, TERMS, 1});
    ms_quantize(recipe, MS_OPERAND_WEIGHT, 0,
                &(ms_product_operand){qb, ROWS, TERMS, TERMS, 1});
    multiply(qa, qb, got);
    multiply(a, b, want);
    for (long row = 0; row < ROWS; row++) {
        double apart = 0, size = 0;
        for (long i = row * ROWS; i < (row + 1) * ROWS; i++) {
            apart += (got[i] - want[i]) * (got[i] - want[i]);
            size += want[i] * want[i];
        }
        sum += sqrt(apart / size);
    }
    return sum / ROWS;
}

/* A third of the rows has one element so large that under a common scale all others
 * become 0: with one scale they do in all rows, with a scale a row in that third, with
 * blocks in one block of it. */
static void finer_blocks_are_nearer_beside_outliers(void **state)
{
    (void)state;
    static float a[ROWS * TERMS], b[ROWS * TERMS];
    ms_rng rng = ms_rng_seed(4);
    draw(&rng, a, ROWS * TERMS, 1);
    draw(&rng, b, ROWS * TERMS, 1);
    for (long row = 0; row < ROWS; row++) {
        if (row % 3 == 0)
            a[row * TERMS] = 1e7F;
        b[row * TERMS] = 0;
    }
    double tensorwise = error_of_product(MS_RECIPE_TENSORWISE, a, b),
           rowwise = error_of_product(MS_RECIPE_ROWWISE, a, b),
           blockwise = error_of_product(MS_RECIPE_BLOCKWISE, a, b),
           mxfp8 = error_of_product(MS_RECIPE_MXFP8, a, b);
    const double rounding = 0.04; /* 3.7 %: docs/formulas 12.10 */
    ASSERT_NEAR(tensorwise, 1, rounding);
    ASSERT_NEAR(rowwise, 1.0 / 3, 2 * rounding);
    ASSERT_NEAR(blockwise, sqrt(128.0 / TERMS) / 3, 0.2);
    assert_true(mxfp8 < blockwise && mxfp8 > sqrt(32.0 / TERMS) / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_known_exactly),
        cmocka_unit_test(numbers_are_the_nearest_of_all),
        cmocka_unit_test(blocks_have_their_own_scales),
        cmocka_unit_test(scales_of_earlier_steps_saturate),
        cmocka_unit_test(what_is_not_finite_stays_so),
        cmocka_unit_test(finer_blocks_are_nearer_beside_outliers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
