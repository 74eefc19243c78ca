/* NF4 with double quantization against a slow reference. */
#include "exec/params/nf4.h"

#include "base/rng.h"
#include "exec/params/optimizer.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

#define MOST 40000

static void draw_normal(uint64_t seed, double *values, long count)
{
    ms_rng rng = ms_rng_seed(seed);
    for (long i = 0; i < count; i++) {
        double radius = sqrt(-2.0 * log(1.0 - ms_rng_uniform(&rng)));
        values[i] = 0.02 * radius * cos(2.0 * acos(-1.0) * ms_rng_uniform(&rng));
    }
}

/* The number of a table that is nearest to x. */
static double nearest_of(const double *table, int size, double x)
{
    double best = table[0];
    for (int i = 1; i < size; i++)
        if (fabs(table[i] - x) < fabs(best - x))
            best = table[i];
    return best;
}

static double largest_of(const double *values, long first, long end)
{
    double largest = 0.0;
    for (long i = first; i < end; i++)
        largest = fmax(largest, fabs(values[i]));
    return largest;
}

static long least(long a, long b)
{
    return a < b ? a : b;
}

/* Quantizes and restores values one by one, by the definition. */
static void slow_reference(const double *values, long count, double *out)
{
    double tree[256];
    ms_dynamic_tree(false, tree);
    for (long i = 0; i < count; i++) {
        long block = i / MS_NF4_BLOCK * MS_NF4_BLOCK;
        long group = i / MS_NF4_GROUP * MS_NF4_GROUP;
        double scale = largest_of(values, block, least(block + MS_NF4_BLOCK, count));
        float top = (float)largest_of(values, group, least(group + MS_NF4_GROUP, count));
        double number =
            nearest_of(ms_nf4_numbers, 16, scale > 0.0 ? values[i] / scale : 0.0);
        out[i] = number *
                 (top > 0.0F ? nearest_of(tree, 256, scale / (double)top) : 0.0) *
                 (double)top;
    }
}

static void check_values(const double *values, long count)
{
    static double want[MOST], got[MOST];
    static unsigned char codes[MOST];
    long bytes = ms_nf4_bytes(count);
    memset(codes, 0xee, sizeof codes);
    ms_nf4_write(values, count, codes);
    for (long i = bytes; i < bytes + 64; i++)
        ASSERT_INT(codes[i], 0xee);
    ms_nf4_read(codes, count, got);
    slow_reference(values, count, want);
    for (long i = 0; i < count; i++)
        ASSERT_NEAR(got[i], want[i], 1e-15);
}

static void codes_are_those_of_the_nearest_numbers(void **state)
{
    (void)state;
    static double values[MOST];
    static const long counts[] = {1, 2, 63, 64, 65, 777, MS_NF4_GROUP, 16385, 33000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        draw_normal(i, values, counts[i]);
        check_values(values, counts[i]);
    }
    memset(values, 0, sizeof values);
    check_values(values, 100);
    values[70] = -3.0; /* a block of zeros beside another */
    check_values(values, 100);
}

/* QLoRA, section 3: 0.5 + 1 / 64 + 4 / (64 x 256) bytes a value. */
static void sizes_are_those_of_the_paper(void **state)
{
    (void)state;
    const double groups = 7.0;
    ASSERT_NEAR((double)ms_nf4_bytes(7L * MS_NF4_GROUP),
                groups * MS_NF4_GROUP * (0.5 + 1.0 / 64.0 + 4.0 / (64.0 * 256.0)), 0);
    ASSERT_INT(ms_nf4_bytes(0), 0);
    ASSERT_INT(ms_nf4_bytes(1), 4 + 1 + 1);
    ASSERT_INT(ms_nf4_bytes(MS_NF4_GROUP + 65), 4 + 256 + 8192 + 4 + 2 + 33);
}

/* Normally distributed values come back with a root mean square error of 0.08 to 0.1 of
 * theirs, and none is off by more than half the widest gap of the numbers and what the
 * 8-bit scale adds. */
static void errors_are_bounded(void **state)
{
    (void)state;
    static double values[MOST], got[MOST];
    static unsigned char codes[MOST];
    const double widest = 1.0 - 0.6961928009986877;
    double errors = 0.0, squares = 0.0;
    draw_normal(77, values, MOST);
    ms_nf4_write(values, MOST, codes);
    ms_nf4_read(codes, MOST, got);
    for (long i = 0; i < MOST; i++) {
        long block = i / MS_NF4_BLOCK * MS_NF4_BLOCK;
        double scale = largest_of(values, block, least(block + MS_NF4_BLOCK, MOST));
        double error = fabs(got[i] - values[i]);
        assert_true(error <= (widest / 2.0 + 0.01) * scale);
        errors += error * error;
        squares += values[i] * values[i];
    }
    double relative = sqrt(errors / squares);
    assert_true(relative > 0.08 && relative < 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_those_of_the_nearest_numbers),
        cmocka_unit_test(sizes_are_those_of_the_paper),
        cmocka_unit_test(errors_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
