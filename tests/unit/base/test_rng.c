/* Random numbers: the published sequence of splitmix64, bounds of draws, and
 * independent streams. */
#include "base/rng.h"
#include "tests/test.h"

static void the_sequence_is_the_published_one(void **state)
{
    (void)state;
    /* Vigna's splitmix64.c (prng.di.unimi.it) seeded with 1234567, as quoted on
     * rosettacode.org */
    static const uint64_t want[] = {6457827717110365317u, 3203168211198807973u,
                                    9817491932198370423u, 4593380528125082431u,
                                    16408922859458223821u};
    ms_rng rng = ms_rng_seed(1234567);
    for (int i = 0; i < 5; i++)
        assert_true(ms_rng_next(&rng) == want[i]);
}

static void draws_stay_below_the_bound_and_reach_it(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(1);
    int seen[6] = {0};
    for (int i = 0; i < 6000; i++) {
        uint64_t drawn = ms_rng_below(&rng, 6);
        assert_true(drawn < 6);
        seen[drawn]++;
    }
    /* each of the 6 values is expected 1000 times, with a standard deviation of 29 */
    for (int i = 0; i < 6; i++)
        assert_true(seen[i] > 850 && seen[i] < 1150);
    ASSERT_INT(ms_rng_below(&rng, 1), 0);
    for (int i = 0; i < 100; i++)
        assert_true(ms_rng_below(&rng, UINT64_MAX) < UINT64_MAX);
}

static void uniform_draws_fill_the_unit_interval(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(2);
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < 20000; i++) {
        double drawn = ms_rng_uniform(&rng);
        assert_true(drawn >= 0.0 && drawn < 1.0);
        sum += drawn;
        squares += drawn * drawn;
    }
    ASSERT_NEAR(sum / 20000, 0.5, 0.02);
    ASSERT_NEAR(squares / 20000, 1.0 / 3.0, 0.02);
}

static void a_split_ignores_what_was_drawn(void **state)
{
    (void)state;
    ms_rng fresh = ms_rng_seed(3), used = ms_rng_seed(3);
    for (int i = 0; i < 10; i++)
        ms_rng_next(&used);
    ms_rng a = ms_rng_split(fresh, 5), b = ms_rng_split(used, 5);
    assert_true(ms_rng_next(&a) == ms_rng_next(&b));
}

static void streams_of_different_keys_and_seeds_differ(void **state)
{
    (void)state;
    uint64_t first[64];
    for (uint64_t i = 0; i < 64; i++) {
        ms_rng rng = ms_rng_split(ms_rng_seed(i / 8), i % 8);
        first[i] = ms_rng_next(&rng);
        for (uint64_t j = 0; j < i; j++)
            assert_true(first[i] != first[j]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sequence_is_the_published_one),
        cmocka_unit_test(draws_stay_below_the_bound_and_reach_it),
        cmocka_unit_test(uniform_draws_fill_the_unit_interval),
        cmocka_unit_test(a_split_ignores_what_was_drawn),
        cmocka_unit_test(streams_of_different_keys_and_seeds_differ),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
