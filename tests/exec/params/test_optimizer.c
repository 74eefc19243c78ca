/* Moments in 8 bits: the tree of numbers, rounding to it by blocks, and AdamW on them
 * against a second implementation. */
#include "exec/params/optimizer.h"

#include "base/rng.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

static void trees_are_the_published_ones(void **state)
{
    (void)state;
    double with_sign[256], without[256];
    ms_dynamic_tree(true, with_sign);
    ms_dynamic_tree(false, without);
    for (int i = 1; i < 256; i++)
        assert_true(with_sign[i] > with_sign[i - 1] && without[i] > without[i - 1]);
    /* means of 1 part (2 without sign) of [0.1, 1] at 1e-6, and the last of 64 (128) */
    ASSERT_NEAR(with_sign[127], 0.0, 0.0);
    ASSERT_NEAR(with_sign[128], 0.55e-6, 1e-20);
    ASSERT_NEAR(with_sign[254], 1.0 - 0.45 / 64, 1e-15);
    ASSERT_NEAR(with_sign[0], -(1.0 - 0.45 / 64), 1e-15);
    ASSERT_NEAR(with_sign[255], 1.0, 0.0);
    ASSERT_NEAR(without[0], 0.0, 0.0);
    ASSERT_NEAR(without[1], 0.325e-6, 1e-20);
    ASSERT_NEAR(without[2], 0.775e-6, 1e-20);
    ASSERT_NEAR(without[254], 1.0 - 0.45 / 128, 1e-15);
    ASSERT_NEAR(without[255], 1.0, 0.0);
}

enum {
    NUM = 2 * MS_STATE_BLOCK + 88
};

/* Rounds a block the slow way. */
static void round_block(bool is_signed, double *values, long count)
{
    double tree[256], largest = 0.0;
    ms_dynamic_tree(is_signed, tree);
    for (long i = 0; i < count; i++)
        largest = fabs(values[i]) > largest ? fabs(values[i]) : largest;
    double scale = (double)(float)largest;
    for (long i = 0; i < count && scale > 0.0; i++) {
        int best = 0;
        for (int j = 1; j < 256; j++)
            if (fabs(tree[j] - values[i] / scale) < fabs(tree[best] - values[i] / scale))
                best = j;
        values[i] = tree[best] * scale;
    }
}

static void round_blocks(bool is_signed, double *values)
{
    for (long i = 0; i < NUM; i += MS_STATE_BLOCK)
        round_block(is_signed, values + i,
                    i + MS_STATE_BLOCK < NUM ? MS_STATE_BLOCK : NUM - i);
}

static void codes_are_the_nearest_numbers(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(3);
    double values[NUM], want[NUM], got[NUM];
    unsigned char codes[NUM];
    float scales[3];
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        for (int i = 0; i < NUM; i++) {
            double x = exp(-12.0 * ms_rng_uniform(&rng));
            values[i] = is_signed && i % 3 == 0 ? -x : x;
            if (i >= MS_STATE_BLOCK && i < 2 * MS_STATE_BLOCK)
                values[i] = 0.0; /* a block without a scale */
        }
        memcpy(want, values, sizeof want);
        round_blocks(is_signed, want);
        ms_codes_write(is_signed, values, NUM, codes, scales);
        ms_codes_read(is_signed, codes, scales, NUM, got);
        for (int i = 0; i < NUM; i++)
            ASSERT_NEAR(got[i], want[i], 0.0);
    }
}

static void adamw_on_codes_is_adamw_with_rounded_moments(void **state)
{
    (void)state;
    const double lr = 0.01, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, decay = 0.1;
    ms_adamw how = {lr, beta1, beta2, epsilon, decay, 1, 1.0};
    ms_rng rng = ms_rng_seed(4);
    double weight[NUM], gradient[NUM], m[NUM] = {0}, v[NUM] = {0};
    double want[NUM], want_m[NUM] = {0}, want_v[NUM] = {0};
    unsigned char codes[2][NUM] = {{0}};
    float scales[2][3] = {{0}};
    for (int i = 0; i < NUM; i++)
        want[i] = weight[i] = ms_rng_uniform(&rng);
    for (how.step = 1; how.step <= 4; how.step++) {
        for (int i = 0; i < NUM; i++)
            gradient[i] = ms_rng_uniform(&rng) - 0.5;
        ms_codes_read(true, codes[0], scales[0], NUM, m);
        ms_codes_read(false, codes[1], scales[1], NUM, v);
        ms_optimizer_step(MS_OPTIMIZER_ADAM_8BIT, &how,
                          &(ms_elements){NUM, weight, gradient, {m, v}});
        ms_codes_write(true, m, NUM, codes[0], scales[0]);
        ms_codes_write(false, v, NUM, codes[1], scales[1]);
        for (int i = 0; i < NUM; i++) {
            double g = gradient[i], step = (double)how.step;
            want_m[i] = beta1 * want_m[i] + (1 - beta1) * g;
            want_v[i] = beta2 * want_v[i] + (1 - beta2) * g * g;
            want[i] -= lr * decay * want[i];
            want[i] -= lr * (want_m[i] / (1 - pow(beta1, step))) /
                       (sqrt(want_v[i] / (1 - pow(beta2, step))) + epsilon);
            ASSERT_NEAR(weight[i], want[i], 1e-13);
        }
        round_blocks(true, want_m);
        round_blocks(false, want_v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_are_the_published_ones),
        cmocka_unit_test(codes_are_the_nearest_numbers),
        cmocka_unit_test(adamw_on_codes_is_adamw_with_rounded_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
