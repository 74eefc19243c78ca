/* The plan search against brute force, which replays every plan. Failures name the
 * case or the seed. */
#include "base/rng.h"
#include "sim/step/framework_rules.h"
#include "sim/step/prediction.h"
#include "tests/property/random_cases.h"

#include <math.h>

/* ---- brute force ---- */

typedef struct family {
    const char *model, *stack;
    long gpus, batch;
    double keep_frac;
    int num_cases;
} family;

/* Rules by which plans fit; no plan of any stack fits with the last one. */
static const ms_memory_rule rules[] = {
    {.min_probability = 0.0},
    {.min_probability = 0.95},
    {.min_probability = 0.8, .headroom_frac = 0.08},
    {.min_probability = 0.97, .headroom_bytes = 0x6p30},
    {.min_probability = 0.999},
};
#define NUM_RULES (sizeof rules / sizeof *rules)

/* Search spaces from which random plans were removed (by seed), with changing memory
 * rules, until enough of them hold a plan that is legal. */
static void search_equals_brute_force_on_thinned_spaces(void **state)
{
    (void)state;
    static const family families[] = {
        {"8b", "generic", 8, 64, 0.7, 12},
        {"8b", "megatron", 12, 96, 0.6, 8},
        {"8b", "torchtitan", 16, 64, 0.6, 8},
        {"8b", "generic", 64, 128, 0.5, 6},
        {"qwen3-30b-a3b", "generic", 8, 32, 0.6, 6},
        {"qwen3-30b-a3b", "megatron-bridge", 16, 32, 0.6, 4},
        {"deepseek-v2-lite", "generic", 16, 32, 0.5, 4},
        {"70b", "nanotron", 64, 64, 0.5, 4},
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const family *f = &families[i];
        int num_full = 0;
        for (unsigned long seed = 1; num_full < f->num_cases / TEST_CASES(1, 4); seed++) {
            assert_true(seed < 400);
            search_case c = {f->model, f->stack,     "hgx-h100",   f->gpus,
                             f->batch, seed * 7 + i, f->keep_frac, {NULL}};
            num_full += compare_by_rule(&c, &rules[(seed + i) % NUM_RULES], 1) > 0;
        }
    }
}

static void search_equals_brute_force_on_whole_spaces(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"8b", "generic", "hgx-h100", 8, 16, 0, 1.0, {NULL}},
        {"llama-3.2-1b", "megatron", "hgx-a100-80g", 12, 24, 0, 1.0, {NULL}},
        {"qwen3-30b-a3b", "generic", "hgx-h200", 8, 8, 0, 1.0, {NULL}},
        {"gpt2-xl", "megatron-2021", "hgx-a100-40g", 16, 32, 0, 1.0, {NULL}},
        {"8b", "generic", "gb200-nvl72", 16, 16, 0, 1.0, {"tp>=2", NULL}},
        {"8b", "generic", "mi300x", 16, 16, 0, 1.0, {"tp>=2", NULL}},
        {"llama-3.2-1b", "maxtext", "tpu-v5p", 12, 24, 0, 1.0, {NULL}},
        {"8b", "torchtitan", "hgx-h100", 8, 16, 0, 1.0, {"recompute=auto", NULL}},
        {"qwen3-30b-a3b", "generic", "hgx-h100", 8, 8, 0, 1.0, {"recompute=auto", NULL}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += TEST_CASES(1, 3))
        assert_true(compare_with_brute_force(&cases[i], 2) > 1000);
}

/* 12 GPUs have shards that 4 ranks do not divide: no plan reshards over these. */
static void search_equals_brute_force_however_shards_move(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"8b", "generic", "hgx-h100", 8, 16, 0, 1.0, {"shards", NULL}},
        {"llama-3.2-1b", "generic", "h100-roce", 12, 24, 0, 1.0, {"shards", NULL}},
        {"qwen3-30b-a3b", "generic", "hgx-h200", 8, 8, 0, 1.0, {"shards", NULL}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(compare_with_brute_force(&cases[i], 2) > 1000);
}

/* Across nodes, asynchronous TP does not change a plan's time. Of plans that differ in it
 * alone, the search must report the first one, as brute force does. */
static void asynchronous_tp_across_nodes(void **state)
{
    (void)state;
    const search_case c = {
        "llama-7b", "generic", "hgx-h100", 16,
        64,         0,         1.0,        {"tp=16", "sequence_parallel=on", NULL}};
    assert_true(compare_with_brute_force(&c, 1) > 0);
}

/* A memory rule leaves exactly the plans that its probability and headroom allow: the best
 * plan of a search with a rule is the fastest of all plans, listed without a rule, whose
 * predicted peak fits beside the headroom, with at least that probability. */
static void a_rule_keeps_the_plans_of_its_probability(void **state)
{
    (void)state;
    search_case c = {"8b", "torchtitan", "hgx-h100", 8, 16, 0, 1.0, {"cp=1", NULL}};
    ms_ctx *cx = test_cx();
    ms_space space;
    ms_workload *workload = open_case(cx, &c, &space);
    ms_search_options options = {
        .num_best = 4000, .variants = true, .num_threads = 1, .exhaustive = true};
    ms_search_result all;
    ASSERT_OK(ms_search(cx, workload, &space, &options, &all), cx);
    int num_different = 0, last = 0;
    for (size_t r = 0; r < NUM_RULES; r++) {
        ms_workload_set_memory_rule(workload, &rules[r]);
        int i = 0;
        for (; i < all.num_found; i++) {
            ms_prediction is;
            ASSERT_OK(ms_predict(cx, workload, &all.found[i].plan, &is), cx);
            double free_bytes =
                ms_prediction_free_bytes(&is, is.peak_bytes) -
                fmax(rules[r].headroom_bytes, rules[r].headroom_frac * is.capacity_bytes);
            bool fits =
                free_bytes >= 0.0 && is.fits_probability >= rules[r].min_probability;
            assert_true(fits == is.fits);
            if (fits)
                break;
        }
        num_different += r > 0 && i != last;
        last = i;
        ms_search_result best = search_with(cx, workload, &space, 1, false);
        assert_true((i < all.num_found) == (best.num_found > 0));
        if (best.num_found > 0)
            ASSERT_NEAR(best.found[0].step_s, all.found[i].step_s, 0);
    }
    assert_true(num_different >= 2);
    ms_workload_close(workload);
}

/* Lists the fastest plans of a space without the framework's rules, `num` at most. */
static ms_search_result list_without_rules(ms_ctx *cx, ms_workload *workload,
                                           const ms_space *space, int num)
{
    const ms_rule_set framework = workload->rules;
    ms_search_options options = {
        .num_best = num, .variants = true, .num_threads = 2, .exhaustive = true};
    ms_search_result all;
    workload->rules.num = 0;
    ms_status status = ms_search(cx, workload, space, &options, &all);
    assert_true(status == MS_OK || status == MS_ENOFIT);
    workload->rules = framework;
    return all;
}

/* Whether the framework accepts the plan, or the same plan in another order of axes that
 * places all groups alike, of which a search without rules lists one. */
static bool is_accepted_alike(ms_workload *workload, const ms_plan *plan)
{
    const ms_rule_set framework = workload->rules;
    ms_order_list list;
    int own = 0;
    workload->rules.num = 0;
    ms_space_list_orders(plan, workload, &list);
    workload->rules = framework;
    while (own < list.num && !ms_space_same_order(plan, list.orders[own].order))
        own++;
    assert_true(own < list.num);
    for (int i = 0; i < list.num; i++) {
        ms_plan alike = *plan;
        memcpy(alike.order, list.orders[i].order, sizeof alike.order);
        if (list.orders[i].alike == list.orders[own].alike &&
            ms_workload_broken_rule(workload, &alike) == NULL)
            return true;
    }
    return false;
}

/* The fastest plan of a space that fits and that the stack's framework accepts, out of all
 * plans, listed without its rules; infinite: there is none. Counts the faster ones that
 * it refuses. */
static double fastest_accepted_s(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                                 int *num_refused)
{
    for (int most = 1000;; most *= 8) {
        ms_search_result all = list_without_rules(cx, workload, space, most);
        for (int i = 0; i < all.num_found; i++) {
            *num_refused = i;
            if (is_accepted_alike(workload, &all.found[i].plan))
                return all.found[i].step_s;
        }
        if (all.num_found < most)
            return (double)INFINITY;
    }
}

/* Compares the search with the fastest accepted plan; false if the framework accepts none
 * that fits. */
static bool finds_fastest_accepted(const search_case *c, const ms_memory_rule *rule,
                                   int *num_changed)
{
    ms_ctx *cx = test_cx();
    ms_space space;
    ms_workload *workload = open_case(cx, c, &space);
    ms_workload_set_memory_rule(workload, rule);
    ms_search_result best = search_with(cx, workload, &space, 2, false);
    int num_refused = 0;
    double want_s = fastest_accepted_s(cx, workload, &space, &num_refused);
    ASSERT_INT(best.num_found > 0, isfinite(want_s));
    if (best.num_found > 0 && best.found[0].step_s != want_s)
        fail_msg("%s: %.17g s, want %.17g s", describe_case(cx, c), best.found[0].step_s,
                 want_s);
    *num_changed += best.num_found > 0 && num_refused > 0;
    ms_workload_close(workload);
    return best.num_found > 0;
}

/* Under the rules of a framework the search finds the fastest plan that obeys them, on
 * spaces thinned by seed, of each case until two of them (under sanitizers one) hold
 * a plan that is legal. */
static void frameworks_get_the_fastest_plan_that_they_accept(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"8b", "megatron", "hgx-h100", 8, 16, 0, 0.7, {NULL}},
        {"8b", "megatron@0.11", "hgx-h100", 12, 24, 0, 0.6, {"pp>=2", NULL}},
        {"8b", "megatron", "hgx-a100-80g", 16, 24, 0, 0.5, {"pp>=4", NULL}},
        {"8b", "megatron@0.9", "hgx-a100-80g", 12, 48, 0, 0.9, {"pp>=3", NULL}},
        {"llama-7b", "torchtitan", "hgx-h100", 12, 24, 0, 0.9, {"pp>=3", NULL}},
        {"qwen3-30b-a3b", "torchtitan@main", "hgx-h200", 8, 8, 0, 0.5, {"tp>=2", NULL}},
        {"8b", "nanotron", "hgx-h100", 16, 16, 0, 0.95, {"pp>=2", NULL}},
        {"llama-3.2-1b", "torchtitan", "hgx-h100", 12, 24, 0, 0.6, {NULL}},
        {"8b", "torchtitan@main", "hgx-h100", 16, 16, 0, 0.5, {"pp>=2", NULL}},
        {"8b", "nanotron", "hgx-h100", 16, 16, 0, 0.95, {"zero>=1", NULL}},
        {"8b", "deepspeed", "hgx-h100", 16, 16, 0, 0.95, {"pp>=2", NULL}},
        {"8b", "deepspeed", "hgx-a100-40g", 16, 16, 0, 0.95, {"tp>=2", NULL}},
        {"qwen3-30b-a3b", "megatron", "hgx-h100", 16, 16, 0, 0.5, {"tp>=2", NULL}},
        {"qwen3-30b-a3b", "deepspeed", "hgx-h100", 16, 16, 0, 0.95, {"ep>=2", NULL}},
        {"llama-3.2-1b", "maxtext", "hgx-h100", 16, 32, 0, 0.9, {"pp>=2", NULL}},
        {"8b", "megatron", "hgx-h100", 64, 64, 0, 0.6, {"tp>=2", NULL}},
        {"8b", "torchtitan", "hgx-h100", 64, 64, 0, 0.6, {"tp>=2", NULL}},
    };
    int num_changed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += TEST_CASES(1, 4)) {
        int num_full = 0;
        for (unsigned long seed = 1; num_full < 1; seed++) {
            search_case c = cases[i];
            c.seed = seed * 100 + i;
            if (seed > 100)
                fail_msg("no thinned space of %s on %ld GPUs holds a plan of %s", c.model,
                         c.gpus, c.stack);
            num_full += finds_fastest_accepted(&c, &rules[(seed + i) % 3], &num_changed);
        }
    }
    assert_true(num_changed >= TEST_CASES(5, 1));
}

/* Plans drawn from the whole space, legal and fitting with the probability asked for, every
 * second one a neighbour of the best, are not faster than the search's best plan. */
static void no_random_plan_is_faster(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"70b", "megatron", "hgx-h100", 512, 512, 1, 1.0, {NULL}},
        {"mixtral-8x7b", "torchtitan", "hgx-h100", 128, 512, 2, 1.0, {NULL}},
        {"8b", "deepspeed", "hgx-a100-80g", 64, 512, 3, 1.0, {NULL}},
    };
    const int num_plans = TEST_CASES(200, 40);
    for (size_t i = TEST_CASES(0, 2); i < sizeof cases / sizeof *cases; i++)
        assert_true(draw_slower_plans(&cases[i], num_plans) > num_plans / 10);
}

/* Whether two plans differ in recomputation and asynchronous TP at most. */
static bool are_siblings(const ms_plan *a, const ms_plan *b)
{
    ms_plan like = *a;
    like.recompute = b->recompute;
    like.recompute_layers = b->recompute_layers;
    like.async_tp = b->async_tp;
    return ms_plan_equal(&like, b);
}

/* The search's list of a plan's variants leaves a variant out exactly when it holds one
 * that is as fast or faster, and that differs from it only in recomputation or
 * asynchronous TP. */
static void variants_leave_out_dominated_plans_only(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"8b", "generic", "hgx-h100", 8, 16, 0, 1.0, {"cp<=2", NULL}},
        {"8b", "megatron", "hgx-h100", 12, 24, 0, 1.0, {"tp<=2", NULL}},
        {"qwen3-30b-a3b", "generic", "hgx-h200", 8, 8, 0, 1.0, {"cp=1", NULL}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c += TEST_CASES(1, 3)) {
        ms_ctx *cx = test_cx();
        ms_space space;
        ms_workload *workload = open_case(cx, &cases[c], &space);
        ms_search_options options = {
            .num_best = 2000, .variants = true, .num_threads = 1, .exhaustive = true};
        ms_search_result all, some;
        ASSERT_OK(ms_search(cx, workload, &space, &options, &all), cx);
        options.exhaustive = false;
        options.num_best = 50;
        ASSERT_OK(ms_search(cx, workload, &space, &options, &some), cx);
        int next = 0;
        for (int i = 0; i < all.num_found && next < some.num_found; i++) {
            bool found = all.found[i].step_s >= some.found[next].step_s &&
                         ms_plan_equal(&all.found[i].plan, &some.found[next].plan);
            next += found;
            bool dominated = found;
            for (int j = 0; j < next && !dominated; j++)
                dominated = are_siblings(&all.found[i].plan, &some.found[j].plan);
            if (!dominated)
                fail_msg("%s: %s (%.17g s) is missing", describe_case(cx, &cases[c]),
                         ms_plan_text(cx->arena, &all.found[i].plan),
                         all.found[i].step_s);
        }
        if (all.num_found < 2000)
            ASSERT_INT(next, some.num_found);
        ms_workload_close(workload);
    }
}

/* The step time of each plan that the search finds is what predicting that plan gives,
 * also where the plan has a context-parallel balance other than the default. */
static void plans_found_take_what_is_predicted(void **state)
{
    (void)state;
    const search_case c = {"8b", "generic", "hgx-h100", 16, 32, 0, 1.0, {"cp>=2", NULL}};
    for (int balance = MS_CP_HEAD_TAIL; balance <= MS_CP_NONE; balance++) {
        ms_ctx *cx = test_cx();
        ms_space space;
        ms_workload *workload = open_case(cx, &c, &space);
        space.base.cp_balance = (ms_cp_balance)balance;
        ms_search_result result = search_with(cx, workload, &space, 1, false);
        assert_true(result.num_found > 0);
        for (int i = 0; i < result.num_found; i++) {
            ms_prediction is;
            ASSERT_OK(ms_predict(cx, workload, &result.found[i].plan, &is), cx);
            ASSERT_NEAR(result.found[i].step_s, is.replay_step_s, 1e-9);
        }
        ms_workload_close(workload);
    }
}

static void a_model_too_large_is_too_large_for_both(void **state)
{
    (void)state;
    const search_case c = {"405b", "generic", "hgx-h100", 8, 8, 0, 1.0, {NULL}};
    assert_true(compare_with_brute_force(&c, 2) > 0);
}

static void threads_do_not_change_the_result(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"8b", "generic", "hgx-h100", 64, 512, 0, 1.0, {NULL}},
        {"70b", "megatron", "hgx-h100", 128, 256, 0, 1.0, {NULL}},
        {"deepseek-v2-lite", "generic", "hgx-h800", 16, 64, 0, 1.0, {NULL}},
        {"405b", "generic", "hgx-h100", 16, 16, 0, 1.0, {NULL}},
    };
    for (size_t i = TEST_CASES(0, 2); i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_space space;
        ms_workload *workload = open_case(cx, &cases[i], &space);
        ms_search_result one = search_with(cx, workload, &space, 1, false);
        for (int threads = 2; threads <= 4; threads++) {
            ms_search_result more = search_with(cx, workload, &space, threads, false);
            expect_same_search(cx, &more, &one, describe_case(cx, &cases[i]));
        }
        ms_workload_close(workload);
    }
}

/* ---- bounds of meshes ---- */

/* The relaxed lower bound decides which meshes the search never looks at: it must not
 * exceed the step time of the best plan of its mesh, and meshes that compare as equal
 * have equal bounds. None is below the bound that an interrupted search states of meshes
 * that it did not come to. */
static void no_mesh_is_faster_than_its_bound(void **state)
{
    (void)state;
    static const search_case cases[] = {
        {"8b", "generic", "hgx-h100", 16, 32, 0, 1.0, {NULL}},
        {"qwen3-30b-a3b", "torchtitan", "hgx-h200", 8, 8, 0, 1.0, {NULL}},
        {"gpt3-175b", "nanotron", "hgx-a100-80g", 64, 64, 0, 1.0, {"tp>=4", NULL}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += TEST_CASES(1, 2)) {
        ms_ctx *cx = test_cx();
        ms_space space;
        ms_workload *workload = open_case(cx, &cases[i], &space);
        ms_mesh_choice *meshes;
        int num = ms_space_meshes(&space, workload->model, cx->arena, &meshes,
                                  (long[MS_NUM_REFUSALS]){0});
        ms_explorer x = ms_explorer_open(workload, &space, 1);
        x.exhaustive = true;
        double floor_s = ms_step_floor_s(workload, space.base.gpus);
        assert_true(floor_s > 0.0);
        for (int m = 0; m < num; m++) {
            double bound_s = ms_explore_bound_s(&x, &meshes[m], NULL);
            assert_true(bound_s >= floor_s);
            if (m > 0 && ms_explore_compare_bounds(&meshes[m - 1], &meshes[m]) == 0)
                ASSERT_NEAR(bound_s, ms_explore_bound_s(&x, &meshes[m - 1], NULL), 0.0);
            ms_explore_mesh(&x, &meshes[m], INFINITY);
            if (x.num_found > 0 && !(bound_s <= x.found[0].step_s))
                fail_msg("%s, mesh %d: bound %.17g above the best %.17g",
                         describe_case(cx, &cases[i]), m, bound_s, x.found[0].step_s);
        }
        ms_explorer_close(&x);
        ms_workload_close(workload);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(search_equals_brute_force_on_thinned_spaces),
        cmocka_unit_test(search_equals_brute_force_on_whole_spaces),
        cmocka_unit_test(search_equals_brute_force_however_shards_move),
        cmocka_unit_test(asynchronous_tp_across_nodes),
        cmocka_unit_test(a_rule_keeps_the_plans_of_its_probability),
        cmocka_unit_test(frameworks_get_the_fastest_plan_that_they_accept),
        cmocka_unit_test(no_random_plan_is_faster),
        cmocka_unit_test(variants_leave_out_dominated_plans_only),
        cmocka_unit_test(plans_found_take_what_is_predicted),
        cmocka_unit_test(a_model_too_large_is_too_large_for_both),
        cmocka_unit_test(threads_do_not_change_the_result),
        cmocka_unit_test(no_mesh_is_faster_than_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
