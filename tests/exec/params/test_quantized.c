/* Messages in 8 and 4 bits against the definition of their codes. */
#include "exec/params/quantized.h"

#include "base/rng.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

#define MOST 10000

static void draw(uint64_t seed, double *values, long count)
{
    ms_rng rng = ms_rng_seed(seed);
    for (long i = 0; i < count; i++)
        values[i] = 3.0 * ms_rng_uniform(&rng) - 1.0;
}

/* Restored values are multiples of the block's scale, and nearest to what they were. */
static void check_values(ms_quantized_bits bits, const double *values, long count)
{
    static double got[MOST];
    static unsigned char codes[2 * MOST];
    const double most = bits == MS_QUANTISED_8 ? 127.0 : 7.0;
    memset(codes, 0xee, sizeof codes);
    ms_quantized_write(bits, values, count, codes);
    for (long i = 0; i < 64; i++)
        ASSERT_INT(codes[ms_quantized_bytes(bits, count) + i], 0xee);
    ms_quantized_read(bits, codes, count, got);
    for (long i = 0; i < count; i++) {
        long first = i / MS_QUANTISED_BLOCK * MS_QUANTISED_BLOCK;
        double largest = 0.0;
        for (long j = first; j < count && j < first + MS_QUANTISED_BLOCK; j++)
            largest = fmax(largest, fabs(values[j]));
        double scale = (double)(float)(largest / most);
        double code = scale > 0.0 ? got[i] / scale : 0.0;
        ASSERT_NEAR(code, nearbyint(code), 1e-12);
        assert_true(fabs(code) <= most);
        assert_true(fabs(got[i] - values[i]) <= 0.50001 * scale);
    }
}

static void restored_values_are_the_nearest(void **state)
{
    (void)state;
    static double values[MOST];
    static const long counts[] = {1, 2, 3, 100, MS_QUANTISED_BLOCK, 4099};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int bits = MS_QUANTISED_8; bits <= MS_QUANTISED_4; bits++) {
            draw(i, values, counts[i]);
            check_values((ms_quantized_bits)bits, values, counts[i]);
        }
    memset(values, 0, sizeof values);
    check_values(MS_QUANTISED_8, values, 50);
    check_values(MS_QUANTISED_4, values, 51);
}

static void sizes_are_codes_and_scales(void **state)
{
    (void)state;
    ASSERT_INT(ms_quantized_bytes(MS_QUANTISED_8, 0), 0);
    ASSERT_INT(ms_quantized_bytes(MS_QUANTISED_8, 4096), 4100);
    ASSERT_INT(ms_quantized_bytes(MS_QUANTISED_8, 4097), 4105);
    ASSERT_INT(ms_quantized_bytes(MS_QUANTISED_4, 4097), 8 + 2049);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(restored_values_are_the_nearest),
                                       cmocka_unit_test(sizes_are_codes_and_scales)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
