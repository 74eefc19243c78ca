/* Tests of the FP8 kernels: rounding, scales, and casts of operands. */
#include "exec/cuda/cuda_fp8.h"
#include "tests/support/cuda_cases.h"
#include "tests/support/cuda_emulated.h"
#include "tests/support/fp8_numbers.h"
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUM_CODES 256
#define NUM_BF16  (1L << 16)

static const ms_scalar formats[2] = {MS_SCALAR_E4M3, MS_SCALAR_E5M2};

static void *take(size_t bytes)
{
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, 256, bytes > 0 ? bytes : 1), 0);
    memset(memory, 0xff, bytes);
    return memory;
}

/* ---- rounding ---- */

/* Rounds all bf16 numbers times `scale` by the kernel, and expects the nearest FP8
 * number. */
static void expect_rounded(float scale)
{
    unsigned short *x = take(NUM_BF16 * sizeof *x);
    unsigned char *got = take(NUM_BF16);
    ms_cuda_fp8_scales *scales = take(sizeof *scales);
    *scales = (ms_cuda_fp8_scales){.to_fp8 = {scale, scale}};
    for (long i = 0; i < NUM_BF16; i++)
        x[i] = (unsigned short)i;
    for (int f = 0; f < 2; f++) {
        ms_cuda_fp8_matrix m = {
            .x = x, .rows = 256, .cols = NUM_BF16 / 256, .format = formats[f], .to = got};
        ms_cuda_fp8_cast(NULL, &m, scales, f);
        for (long i = 0; i < NUM_BF16; i++) {
            double value = (double)((float)ms_case_from_bf16(x[i]) * scale);
            unsigned want = ms_fp8_nearest(formats[f], value),
                     bits = isnan(value) ? got[i] | 0x80U : got[i];
            if (bits != (isnan(value) ? want | 0x80U : want))
                fail_msg("%a is %#x in %s, not %#x", value, got[i],
                         ms_scalar_names[formats[f]], want);
        }
    }
    free(x);
    free(got);
    free(scales);
}

static void known_numbers(void **state)
{
    (void)state;
    const struct {
        unsigned code[2];
        double value[2];
    } known[] = {
        {{0x00, 0x00}, {0, 0}},
        {{0x01, 0x01}, {0x1p-9, 0x1p-16}},     /* smallest subnormal number */
        {{0x07, 0x03}, {0x1.cp-7, 0x1.8p-15}}, /* largest subnormal number */
        {{0x08, 0x04}, {0x1p-6, 0x1p-14}},     /* smallest normal number */
        {{0x38, 0x3c}, {1, 1}},
        {{0x7e, 0x7b}, {448, 57344}},
        {{0xfe, 0xfb}, {-448, -57344}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int f = 0; f < 2; f++)
            ASSERT_NEAR(ms_fp8_value(formats[f], known[i].code[f]), known[i].value[f], 0);
    assert_true(isnan(ms_fp8_value(MS_SCALAR_E4M3, 0x7f)) &&
                isnan(ms_fp8_value(MS_SCALAR_E5M2, 0x7f)));
    assert_true(isinf(ms_fp8_value(MS_SCALAR_E5M2, 0x7c)));
}

/* The midpoint of any two FP8 neighbours is a bf16 number; scales just above and below 1
 * move it to either side. */
static void numbers_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    const float one[] = {1, 1 + 0x1p-23f, 1 - 0x1p-24f};
    for (int i = 0; i < 3; i++)
        expect_rounded(one[i]);
    ms_rng rng = ms_rng_seed(8);
    for (int i = 0; i < 3; i++)
        expect_rounded((float)exp2(20 * ms_rng_uniform(&rng) - 10));
}

static void every_number_of_a_format_is_its_own(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++)
        for (unsigned code = 0; code < NUM_CODES; code++)
            if (isfinite(ms_fp8_value(formats[f], code)))
                ASSERT_INT(ms_fp8_nearest(formats[f], ms_fp8_value(formats[f], code)),
                           code);
}

/* ---- scales and casts ---- */

typedef struct cast_case {
    long rows, cols;
    bool transpose;
    int format;
    size_t shift; /* offset from an aligned address, in elements */
} cast_case;

static long padded(long x)
{
    return (x + 15) / 16 * 16;
}

static unsigned short *random_bf16(ms_rng *rng, long count, size_t shift, double exponent)
{
    unsigned short *x = take(((size_t)count + shift) * sizeof *x);
    for (long i = 0; i < count; i++) {
        double value =
            (2 * ms_rng_uniform(rng) - 1) * exp2(exponent - 12 * ms_rng_uniform(rng));
        ms_case_store(MS_SCALAR_BF16, x + shift + i, &value, 1);
    }
    return x;
}

static double bf16_at(const unsigned short *x, long i)
{
    return ms_case_from_bf16(x[i]);
}

static double largest_of(const unsigned short *x, long count)
{
    double most = 0;
    for (long i = 0; i < count; i++)
        most = fmax(most, fabs(bf16_at(x, i)));
    return most;
}

static void check_cast(const cast_case *c, const unsigned short *x,
                       const unsigned char *got, float scale)
{
    long rows = c->transpose ? c->cols : c->rows, cols = c->transpose ? c->rows : c->cols;
    for (long row = 0; row < rows; row++) {
        for (long col = 0; col < padded(cols); col++) {
            unsigned want = 0;
            if (col < cols)
                want = ms_fp8_nearest(
                    formats[c->format],
                    (double)((float)bf16_at(x, c->transpose ? col * c->cols + row
                                                            : row * c->cols + col) *
                             scale));
            if (got[row * padded(cols) + col] != want)
                fail_msg("(%ld, %ld)%s: element %ld, %ld is %#x, not %#x", c->rows,
                         c->cols, c->transpose ? " transposed" : "", row, col,
                         got[row * padded(cols) + col], want);
        }
    }
}

/* Casts both operands of a product in three orders of threads. */
static void run_casts(const cast_case pair[2], uint64_t seed)
{
    ms_rng rng = ms_rng_seed(seed);
    ms_cuda_fp8_matrix m[2];
    ms_cuda_fp8_scales *scales = take(sizeof *scales);
    unsigned *parts = take(MS_CUDA_FP8_PART_BYTES);
    unsigned short *memory[2];
    const unsigned long orders[] = {0, 1, 17};
    for (int i = 0; i < 2; i++) {
        const cast_case *c = &pair[i];
        long rows = c->transpose ? c->cols : c->rows,
             cols = c->transpose ? c->rows : c->cols;
        memory[i] = random_bf16(&rng, c->rows * c->cols, c->shift, i == 0 ? 3 : -40);
        m[i] = (ms_cuda_fp8_matrix){.x = memory[i] + c->shift,
                                    .rows = c->rows,
                                    .cols = c->cols,
                                    .transpose = c->transpose,
                                    .format = formats[c->format],
                                    .to = take((size_t)(rows * padded(cols)))};
    }
    for (int order = 0; order < 3; order++) {
        ms_cuda_emulated_set_seed(orders[order]);
        ms_cuda_fp8_find_scales(NULL, scales, parts, m);
        for (int i = 0; i < 2; i++) {
            const cast_case *c = &pair[i];
            float most = (float)largest_of(m[i].x, c->rows * c->cols),
                  top = (float)ms_fp8_largest(formats[c->format]);
            ASSERT_NEAR((double)scales->to_fp8[i], (double)(top / most), 0);
            ASSERT_NEAR((double)scales->from_fp8[i], (double)(most / top), 0);
            ms_cuda_fp8_cast(NULL, &m[i], scales, i);
            check_cast(c, m[i].x, m[i].to, scales->to_fp8[i]);
        }
    }
    for (int i = 0; i < 2; i++) {
        free(memory[i]);
        free(m[i].to);
    }
    free(scales);
    free(parts);
}

static void operands_are_rounded_where_they_lie_and_turned(void **state)
{
    (void)state;
    const cast_case cases[][2] = {
        {{16, 32, false, 0, 0}, {32, 16, true, 1, 0}},
        {{1, 1, false, 0, 0}, {1, 1, true, 0, 0}},
        {{64, 64, true, 0, 0}, {128, 192, true, 1, 0}},
        {{17, 24, false, 1, 0}, {24, 17, true, 0, 0}},
        {{3, 100, false, 0, 1}, {100, 72, true, 0, 3}},
        {{65, 63, true, 0, 0}, {63, 65, false, 1, 0}},
        {{200, 8, true, 1, 0}, {8, 200, false, 0, 0}},
        {{70, 1, true, 0, 0}, {1, 70, false, 0, 5}},
        {{130, 80, false, 0, 0}, {80, 130, true, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_casts(cases[i], 40 + i);
    ms_cuda_emulated_set_seed(0);
}

/* Operands with more elements than one block of threads takes, whose maximum is reduced
 * from several parts. */
static void large_operands_have_many_parts(void **state)
{
    (void)state;
    const cast_case pair[2] = {{129, 512, false, 0, 0}, {48, 40, true, 1, 0}};
    run_casts(pair, 60);
    ms_cuda_emulated_set_seed(0);
}

static void scale_two(ms_cuda_fp8_scales *scales, const double *x, const double *y)
{
    static unsigned parts[2 * MS_CUDA_FP8_PARTS];
    unsigned short bits[2][4];
    ms_cuda_fp8_matrix m[2] = {
        {.x = bits[0], .rows = 1, .cols = 4, .format = MS_SCALAR_E4M3},
        {.x = bits[1], .rows = 1, .cols = 4, .format = MS_SCALAR_E5M2}};
    ms_case_store(MS_SCALAR_BF16, bits[0], x, 4);
    ms_case_store(MS_SCALAR_BF16, bits[1], y, 4);
    ms_cuda_fp8_find_scales(NULL, scales, parts, m);
}

/* Scales of all-zero operands are finite; a NaN or an infinity stays visible in the
 * result. */
static void scales_of_odd_operands(void **state)
{
    (void)state;
    ms_cuda_fp8_scales s;
    scale_two(&s, (const double[]){0, 0, -0.0, 0}, (const double[]){0x1p-120, 0, 0, 0});
    for (int i = 0; i < 2; i++) {
        assert_true(isnormal(s.to_fp8[i]) && isnormal(s.from_fp8[i]));
        ASSERT_NEAR((double)s.from_fp8[i],
                    (double)(0x1p-100f / (float)ms_fp8_largest(formats[i])), 0);
    }
    scale_two(&s, (const double[]){1, HUGE_VAL, 2, 3},
              (const double[]){1, 2, (double)NAN, 4});
    assert_true(isinf(s.from_fp8[0]));
    ASSERT_NEAR((double)s.to_fp8[0], 0, 0); /* zeros times the infinite scale give NaN */
    assert_true(isnan(s.from_fp8[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_numbers),
        cmocka_unit_test(every_number_of_a_format_is_its_own),
        cmocka_unit_test(numbers_are_rounded_to_the_nearest),
        cmocka_unit_test(operands_are_rounded_where_they_lie_and_turned),
        cmocka_unit_test(large_operands_have_many_parts),
        cmocka_unit_test(scales_of_odd_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
