/* Seconds of a forward and a backward layer that run as a pair, each hiding the
 * other's exchanges of expert tokens, by hand. */
#include "costmodel/cost/overlapped_pair.h"

#include "base/rng.h"

#include "tests/test.h"

static double forward_s(const ms_pair_forward *f)
{
    return f->attention_s + f->experts_s + f->result_s + f->dispatch_s + f->combine_s +
           f->exposed_s;
}

static double backward_s(const ms_pair_backward *b)
{
    return b->result_s + b->experts_s + b->weight_s + b->attention_s + b->combine_s +
           b->dispatch_s + b->exposed_s;
}

/* A forward F and a backward B as a pair, from second to second. Compute: attention F
 * 0-3, experts B 3-6, gradients of experts' weights 6-9, experts F 9-12, attention B
 * 12-15. Exchanges of expert tokens: combine B 0-2, dispatch F 3-5, dispatch B 6-8,
 * combine F 12-14; all are hidden behind compute. */
static void short_exchanges_hide(void **state)
{
    (void)state;
    ms_pair_forward f = {3, 3, 0, 2, 2, 0, 0};
    ms_pair_backward b = {0, 3, 3, 3, 2, 2, 0, 0};
    ASSERT_NEAR(ms_pair_s(&f, &b, 0), 15, 1e-12);
}

/* A forward F and a backward B as a pair, from second to second. Compute: result B 0-1,
 * attention F 1-2, experts B 11-12, gradients of experts' weights 12-13, experts F 21-22,
 * attention B 31-32, result F 41-42. Exchanges of expert tokens: combine B 1-11, dispatch
 * F 11-21, dispatch B 21-31, combine F 31-41. If nothing overlaps, the pair takes 47
 * s. */
static void long_exchanges_follow_each_other(void **state)
{
    (void)state;
    ms_pair_forward f = {1, 1, 1, 10, 10, 0, 0};
    ms_pair_backward b = {1, 1, 1, 1, 10, 10, 0, 0};
    ASSERT_NEAR(ms_pair_s(&f, &b, 0), 42, 1e-12);
    ASSERT_NEAR(ms_pair_s(&f, &b, 0.2), 43, 1e-12);
    ASSERT_NEAR(ms_pair_s(&f, &b, 1), 47, 1e-12);
}

/* A forward of a layer without experts, 5 s, in a pair with a backward B of a layer with
 * experts, from second to second: result B 0-1, combine B 1-4 beside the forward 1-6,
 * experts B 6-10, dispatch B 10-13 beside the gradients of experts' weights 10-12,
 * attention B 13-19. Communication other than combine and dispatch is added whole. */
static void one_layer_without_experts_hides_what_it_can(void **state)
{
    (void)state;
    ms_pair_forward f = {.attention_s = 5};
    ms_pair_backward b = {1, 4, 2, 6, 3, 3, 0, 0};
    ASSERT_NEAR(ms_pair_s(&f, &b, 0), 19, 1e-12);
    f.exposed_s = 0.5;
    b.exposed_s = 1.5;
    ASSERT_NEAR(ms_pair_s(&f, &b, 0), 21, 1e-12);
}

static void layers_without_exchanges_take_their_sum(void **state)
{
    (void)state;
    ms_pair_forward f = {3, 2, 1, 0, 0, 0.25, 0};
    ms_pair_backward b = {1, 4, 2, 6, 0, 0, 0.5, 0};
    ASSERT_NEAR(ms_pair_s(&f, &b, 0), 19.75, 1e-12);
    ASSERT_NEAR(ms_pair_s(&f, &b, 0.5), 19.75, 1e-12);
}

/* Forward and backward have 6 s of compute each. A host that launches either in 5 s delays
 * nothing; one that launches the forward in 10 s takes 10 s for it and is done with the
 * backward after another 6. Faster exchanges, which the pair hides, make that no longer. */
static void a_pair_lasts_as_long_as_its_launches(void **state)
{
    (void)state;
    ms_pair_forward f = {2, 2, 2, 1, 1, 0, 5};
    ms_pair_backward b = {0, 2, 2, 2, 2, 2, 0, 5};
    double device_s = ms_pair_s(&f, &b, 0);
    ASSERT_NEAR(ms_pair_host_s(&f, &b, 0), 0, 0);
    f.host_s = 10;
    ASSERT_NEAR(ms_pair_s(&f, &b, 0), 10 + 6, 1e-12);
    ASSERT_NEAR(ms_pair_host_s(&f, &b, 0), 16 - device_s, 1e-12);
    f.dispatch_s = f.combine_s = 0.5;
    ASSERT_NEAR(ms_pair_s(&f, &b, 0), 16, 1e-12);
}

static double some(ms_rng *rng)
{
    return (double)ms_rng_below(rng, 9);
}

/* A pair of random layers takes at least the longer of all compute and all exchanges, and
 * at most the sum of both. Interference between them never shortens the pair, nor does
 * making a part of it longer. */
static void pairs_stay_between_their_bounds(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(11);
    for (int i = 0; i < 2000; i++) {
        ms_pair_forward f = {some(&rng), some(&rng), some(&rng), some(&rng),
                             some(&rng), some(&rng), 0};
        ms_pair_backward b = {some(&rng), some(&rng), some(&rng), some(&rng),
                              some(&rng), some(&rng), some(&rng), 0};
        double both = forward_s(&f) + backward_s(&b), exposed = f.exposed_s + b.exposed_s;
        double exchanges = f.dispatch_s + f.combine_s + b.combine_s + b.dispatch_s;
        double seconds = ms_pair_s(&f, &b, 0);
        assert_true(seconds <= both + 1e-9);
        assert_true(seconds >=
                    fmax(exchanges, both - exposed - exchanges) + exposed - 1e-9);
        assert_true(ms_pair_s(&f, &b, 0.3) >= seconds - 1e-9);
        assert_true(ms_pair_s(&f, &b, 0.3) <= both + 1e-9);
        f.dispatch_s += 1;
        b.experts_s += 1;
        assert_true(ms_pair_s(&f, &b, 0) >= seconds - 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_exchanges_hide),
        cmocka_unit_test(long_exchanges_follow_each_other),
        cmocka_unit_test(one_layer_without_experts_hides_what_it_can),
        cmocka_unit_test(layers_without_exchanges_take_their_sum),
        cmocka_unit_test(a_pair_lasts_as_long_as_its_launches),
        cmocka_unit_test(pairs_stay_between_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
