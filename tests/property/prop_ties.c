/* The order of plans in a tie band: against brute force over all plans of small spaces,
 * and on random plans in any order. */
#include "base/rng.h"
#include "sim/search/ties.h"
#include "tests/property/search_cases.h"

#include <math.h>

#define DEVICE_BYTES 80e9
#define MAX_PLANS    24

/* ---- random plans ---- */

static ms_found random_found(ms_rng *rng)
{
    ms_found found = {.plan = ms_plan_default(64),
                      .step_s = 1.0 + 0.01 * (double)ms_rng_below(rng, 12),
                      .peak_bytes = 1e9 * (double)(30 + ms_rng_below(rng, 40))};
    ms_plan *plan = &found.plan;
    plan->size[MS_PP] = 1L << ms_rng_below(rng, 3);
    plan->size[MS_TP] = 1L << ms_rng_below(rng, 3);
    plan->size[MS_DP_SHARD] = 64 / plan->size[MS_PP] / plan->size[MS_TP];
    plan->virtual_stages = 1 + (long)ms_rng_below(rng, 3);
    plan->microbatch = 1 + (long)ms_rng_below(rng, 64);
    plan->recompute = (ms_recompute)ms_rng_below(rng, 4);
    return found;
}

static int draw(ms_rng *rng, ms_found *found)
{
    int num = 1 + (int)ms_rng_below(rng, MAX_PLANS);
    for (int i = 0; i < num; i++)
        found[i] = random_found(rng);
    return num;
}

static void shuffle(ms_rng *rng, ms_found *found, int num)
{
    for (int i = num - 1; i > 0; i--) {
        int j = (int)ms_rng_below(rng, (uint64_t)i + 1);
        ms_found kept = found[i];
        found[i] = found[j];
        found[j] = kept;
    }
}

static void the_order_depends_on_the_set_only(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(3);
    for (int round = 0; round < 500; round++) {
        ms_found a[MAX_PLANS], b[MAX_PLANS];
        ms_tie of_a[MAX_PLANS], of_b[MAX_PLANS];
        int num = draw(&rng, a);
        memcpy(b, a, sizeof a);
        shuffle(&rng, b, num);
        double band_frac = 0.01 + 0.1 * ms_rng_uniform(&rng);
        ms_ties_order(a, num, band_frac, DEVICE_BYTES, of_a);
        ms_ties_order(b, num, band_frac, DEVICE_BYTES, of_b);
        for (int i = 0; i < num; i++) {
            assert_true(ms_plan_equal(&a[i].plan, &b[i].plan));
            ASSERT_NEAR(a[i].step_s, b[i].step_s, 0.0);
            ASSERT_INT(of_a[i].group, of_b[i].group);
            ASSERT_INT(of_a[i].fastest, of_b[i].fastest);
        }
    }
}

/* Groups come one after the other; a group's plans are within the band of its fastest,
 * which is slower than every plan of the group before by the band; inside, plans come by
 * simplicity. */
static void groups_are_bands_of_simplest_plans(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(5);
    for (int round = 0; round < 500; round++) {
        ms_found found[MAX_PLANS];
        ms_tie ties[MAX_PLANS];
        int num = draw(&rng, found);
        double band = 0.1 * ms_rng_uniform(&rng), least[MAX_PLANS];
        ms_ties_order(found, num, band, DEVICE_BYTES, ties);
        for (int i = 0; i < num; i++)
            least[i] = INFINITY;
        for (int i = 0; i < num; i++)
            least[ties[i].group] = fmin(least[ties[i].group], found[i].step_s);
        ASSERT_INT(ties[0].group, 0);
        for (int i = 0; i < num; i++) {
            int group = ties[i].group;
            ASSERT_NEAR(ties[i].gap_frac, found[i].step_s / least[0] - 1.0, 0.0);
            assert_true(found[i].step_s < least[group] * (1.0 + band) ||
                        found[i].step_s <= least[group]);
            assert_true(!ties[i].fastest || found[i].step_s <= least[0]);
            if (i == 0)
                continue;
            assert_in_range(group - ties[i - 1].group, 0, 1);
            if (group == ties[i - 1].group)
                assert_true(ms_ties_compare(&found[i - 1], &found[i], DEVICE_BYTES) <= 0);
            else
                assert_true(least[group] >= least[group - 1] * (1.0 + band));
        }
    }
}

static void without_a_band_plans_come_by_time(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(9);
    ms_found found[MAX_PLANS], want[MAX_PLANS];
    ms_tie ties[MAX_PLANS];
    int num = draw(&rng, found);
    for (int i = 0; i < num; i++) { /* in pairs of equal time, which stay in order */
        found[i].step_s = 1.0 + i / 2;
        want[i] = found[i];
    }
    ms_ties_order(found, num, 0.0, DEVICE_BYTES, ties);
    for (int i = 0; i < num; i++) {
        assert_true(ms_plan_equal(&found[i].plan, &want[i].plan));
        ASSERT_INT(ties[i].group, i);
    }
}

/* ---- brute force ---- */

static bool same_mesh(const ms_plan *a, const ms_plan *b)
{
    return memcmp(a->size, b->size, sizeof a->size) == 0 && a->ep == b->ep &&
           a->etp == b->etp;
}

/* Complexity of a plan inside its mesh, as one number; written without ties.c. */
static long complexity(const ms_plan *plan)
{
    bool plain = ms_plan_is_plain(plan, MS_CHOOSE_ORDER);
    bool common = plan->schedule == MS_1F1B || plan->schedule == MS_INTERLEAVED;
    return ((!plain * 1000 + plan->virtual_stages) * 2 + !common) * 10 +
           (long)plan->recompute;
}

/* The simplest plan of the mesh of `like` among `all` in the band, of equally simple ones
 * the fastest; NULL: none. */
static const ms_found *simplest_of_mesh(const ms_search_result *all, double limit_s,
                                        const ms_plan *like)
{
    const ms_found *best = NULL;
    for (int i = 0; i < all->num_found; i++) {
        const ms_found *f = &all->found[i];
        if (!(f->step_s < limit_s) || !same_mesh(&f->plan, like))
            continue;
        long now = best == NULL ? 0 : complexity(&best->plan);
        if (best == NULL || complexity(&f->plan) < now ||
            (complexity(&f->plan) == now && f->step_s < best->step_s))
            best = f;
    }
    return best;
}

static void check_representatives(ms_ctx *cx, const ms_search_result *got,
                                  const ms_search_result *all, double limit_s,
                                  const char *label)
{
    for (int i = 0; i < all->num_found; i++) {
        const ms_found *want = simplest_of_mesh(all, limit_s, &all->found[i].plan);
        bool found = want == NULL;
        for (int k = 0; k < got->num_found && !found; k++)
            found = same_mesh(&got->found[k].plan, &want->plan) &&
                    complexity(&got->found[k].plan) == complexity(&want->plan) &&
                    got->found[k].step_s == want->step_s;
        if (!found)
            fail_msg("%s: not listed: %s, %.17g s", label,
                     ms_plan_text(cx->arena, &want->plan), want->step_s);
    }
}

/* Compares the lists of one space with brute force; false if nothing in it fits. */
static bool check_case(const search_case *c)
{
    ms_ctx *cx = test_cx();
    ms_space space;
    ms_workload *workload = open_case(cx, c, &space);
    const ms_search_options every = {.num_best = 40000,
                                     .variants = true,
                                     .num_threads = 2,
                                     .exhaustive = true},
                            quick = {.num_best = 1000, .num_threads = 2};
    ms_search_result all, got;
    bool fits = ms_search(cx, workload, &space, &every, &all) == MS_OK;
    assert_true(all.num_found < every.num_best);
    (void)ms_search(cx, workload, &space, &quick, &got);
    for (double band_frac = 0.02; fits && band_frac < 0.15; band_frac += 0.06) {
        ms_search_result tied = got;
        double best_s = got.found[0].step_s;
        ms_search_tie(cx, workload, &space, &quick, band_frac, &tied);
        int fastest = ms_search_fastest(&tied);
        ASSERT_NEAR(tied.found[fastest].step_s, best_s, 0.0);
        ASSERT_NEAR(tied.ties[fastest].gap_frac, 0.0, 0.0);
        check_representatives(cx, &tied, &all, best_s * (1.0 + band_frac),
                              describe_case(cx, c));
    }
    ms_workload_close(workload);
    return fits;
}

/* Spaces from which random plans were removed, until enough of them hold a plan. */
static void every_mesh_is_represented_by_its_simplest_plan(void **state)
{
    (void)state;
    static const search_case families[] = {
        {"llama-3.2-1b", "generic", "hgx-h100", 16, 32, 0, 0.6, {"zero=1", NULL}},
        {"8b", "megatron", "hgx-h200", 16, 32, 0, 0.6, {"zero=1", NULL}},
        {"qwen3-30b-a3b", "generic", "hgx-h200", 16, 16, 0, 0.6, {"zero>=1", NULL}},
        {"llama-3.2-1b", "megatron", "hgx-a100-80g", 12, 24, 0, 0.6, {NULL}},
    };
    const int num_cases = TEST_CASES(3, 1);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        int num_full = 0;
        for (unsigned long seed = 1; num_full < num_cases; seed++) {
            search_case c = families[i];
            assert_true(seed < 100);
            c.seed = seed * 5 + i;
            num_full += check_case(&c);
        }
    }
}

/* A short list begins as a long one does, and has the fastest plan. */
static void short_lists_begin_as_long_ones(void **state)
{
    (void)state;
    const search_case c = {"8b", "generic", "hgx-h100", 64, 128, 0, 1.0, {NULL}};
    ms_ctx *cx = test_cx();
    ms_space space;
    ms_workload *workload = open_case(cx, &c, &space);
    ms_search_result of[2];
    const int num_best[] = {3, 40};
    for (int i = 0; i < 2; i++) {
        ms_search_options options = {.num_best = num_best[i], .num_threads = 1 + i};
        ASSERT_OK(ms_search(cx, workload, &space, &options, &of[i]), cx);
        ms_search_tie(cx, workload, &space, &options, 0.05, &of[i]);
        ASSERT_INT(of[i].num_found, num_best[i]);
    }
    for (int i = 0; i < 2; i++)
        assert_true(ms_plan_equal(&of[0].found[i].plan, &of[1].found[i].plan));
    ASSERT_NEAR(of[0].found[ms_search_fastest(&of[0])].step_s,
                of[1].found[ms_search_fastest(&of[1])].step_s, 0.0);
    ms_workload_close(workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_depends_on_the_set_only),
        cmocka_unit_test(groups_are_bands_of_simplest_plans),
        cmocka_unit_test(without_a_band_plans_come_by_time),
        cmocka_unit_test(every_mesh_is_represented_by_its_simplest_plan),
        cmocka_unit_test(short_lists_begin_as_long_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
