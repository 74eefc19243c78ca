/* Random plans executed on the loop backend (ranks are threads of one process) give
 * what one rank gives: the loss, every gradient of the first step, and in fp64 the
 * weights after five steps. */
#include "tests/support/run_cases.h"
#include "tests/support/wide_plans.h"
#include "tests/test.h"

#include <math.h>

#define NUM_PLANS TEST_CASES(48, 24) /* random plans in each of fp64 and fp32 */

static void random_plans_equal_one_rank_in_fp64(void **state)
{
    (void)state;
    ASSERT_INT(ms_run_random_plans(&ms_run_fp64, 11, 0, NUM_PLANS), 0);
}

static void random_plans_equal_one_rank_in_fp32(void **state)
{
    (void)state;
    ASSERT_INT(ms_run_random_plans(&ms_run_fp32, 12, 0, NUM_PLANS), 0);
}

/* One rank in fp32, from the same rounded weights, is what bf16 on any ranks rounds. */
static void random_plans_in_bf16_are_near_one_rank_in_fp32(void **state)
{
    (void)state;
    ASSERT_INT(ms_run_random_plans(&ms_run_bf16, 15, 0, NUM_PLANS), 0);
}

static void check_changed(const ms_run_tolerance *how,
                          void (*change)(ms_run_case *, long), const char *what)
{
    int num_wrong = 0;
    for (long i = 0; i < NUM_PLANS / 2; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_run_case c = ms_run_case_draw(&cx, how, 14, i, 0);
        change(&c, i);
        if (!ms_run_agrees(&cx, &c, &ms_backend_loop, how)) {
            printf("that was case %ld with %s\n", i, what);
            num_wrong++;
        }
        ms_arena_close(cx.arena);
    }
    ASSERT_INT(num_wrong, 0);
}

/* Operands of 8 bits move losses little, whatever ranks share the matrices. */
static void random_plans_in_fp8_are_near_one_rank_in_fp32(void **state)
{
    (void)state;
    check_changed(&ms_run_fp8, ms_run_case_choose_recipe, "operands of 8 bits");
}

/* Plans with adapters on frozen weights: shards, pipelines and splits change nothing. */
static void adapters_equal_those_of_one_rank(void **state)
{
    (void)state;
    check_changed(&ms_run_fp64, ms_run_case_adapt, "adapters");
}

/* Beside the 11 results that are rounded on a way through a layer (docs/formulas 12.8), its
 * four linear layers have three more each: of A, of B, and the sum. */
static void adapters_in_bf16_are_near_one_rank_in_fp32(void **state)
{
    (void)state;
    ms_run_tolerance how = ms_run_bf16;
    how.gradients *= sqrt((11.0 + 4.0 * 3.0) / 11.0);
    check_changed(&how, ms_run_case_adapt, "adapters in bf16");
}

/* QLoRA: a base in NF4 is what its restored values are in a run on one rank. */
static void bases_in_nf4_equal_their_restored_weights(void **state)
{
    (void)state;
    check_changed(&ms_run_fp64, ms_run_case_quantize_base, "a base in NF4");
}

/* Runs the cases that `change` can be made to; their number. */
static int run_some(uint64_t seed, bool (*change)(ms_run_case *, long))
{
    int num_wrong = 0, num_run = 0;
    for (long i = 0; i < 2 * NUM_PLANS; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_run_case c = ms_run_case_draw(&cx, &ms_run_fp64, seed, i, 0);
        if (change(&c, i)) {
            num_run++;
            if (!ms_run_agrees(&cx, &c, &ms_backend_loop, &ms_run_fp64)) {
                printf("that was case %ld\n", i);
                num_wrong++;
            }
        }
        ms_arena_close(cx.arena);
    }
    ASSERT_INT(num_wrong, 0);
    return num_run;
}

/* Experts that drop copies beyond their capacity drop the same ones on one rank, which
 * groups tokens as the ranks of the plan do; rows of zeros that fill experts change nothing. */
static void limited_experts_equal_those_of_one_rank(void **state)
{
    (void)state;
    assert_true(2 * run_some(16, ms_run_case_limit_experts) > NUM_PLANS);
}

/* In every fourth case experts drop copies, too. */
static bool gather_tokens(ms_run_case *c, long number)
{
    bool gathers = ms_run_case_gather_tokens(c, number);
    c->plan.expert_capacity = number % 4 == 3 ? 0.8 : 0.0;
    return gathers;
}

/* Experts get the same tokens from an all-gather, and the sums of their results. */
static void gathered_tokens_equal_those_of_one_rank(void **state)
{
    (void)state;
    assert_true(8 * run_some(18, gather_tokens) > NUM_PLANS);
}

/* Weights that codes of 8 or 4 bits represent come back as they were from their gathers. */
static void quantized_gathers_keep_what_codes_represent(void **state)
{
    (void)state;
    int num_wrong = 0, num_run = 0;
    for (long i = 0; i < 2 * NUM_PLANS; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_run_case c = ms_run_case_draw(&cx, &ms_run_fp64, 15, i, 0);
        if (ms_run_case_quantize_gathers(&c, i)) {
            num_run++;
            if (!ms_run_agrees_on_codes(&cx, &c, &ms_run_fp64)) {
                printf("that was case %ld\n", i);
                num_wrong++;
            }
        }
        ms_arena_close(cx.arena);
    }
    ASSERT_INT(num_wrong, 0);
    assert_true(10 * num_run > NUM_PLANS);
}

/* Gradients in 8 and 4 bits are off by what the rounding of each rank's explains. */
static void quantized_reductions_round_gradients(void **state)
{
    (void)state;
    int num_wrong = 0, num_run = 0;
    for (long i = 0; i < 2 * NUM_PLANS; i += 2) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_run_case c = ms_run_case_draw(&cx, &ms_run_fp64, 17, i, 0);
        bool is_sharded = c.plan.size[MS_DP_SHARD] > 1;
        if (is_sharded && ms_run_case_quantize_reductions(&c, i)) {
            num_run++;
            if (!ms_run_agrees_within_codes(&cx, &c)) {
                printf("that was case %ld\n", i);
                num_wrong++;
            }
        }
        ms_arena_close(cx.arena);
    }
    ASSERT_INT(num_wrong, 0);
    assert_true(20 * num_run > NUM_PLANS);
}

/* Modules that are recomputed and shared experts that overlap exchanges change no value. */
static void modules_equal_saved_activations(void **state)
{
    (void)state;
    check_changed(&ms_run_fp64, ms_run_case_choose_modules, "modules");
}

/* The generators of random plans produce every feature that a plan may have. */
static void every_feature_is_drawn(void **state)
{
    (void)state;
    const long num_draws = 2000, least = 10;
    long counts[100] = {0}, schedules[MS_NUM_SCHEDULES] = {0};
    for (long i = 0; i < num_draws; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_run_case c = ms_run_case_draw(&cx, &ms_run_fp64, 13, i, 0);
        schedules[c.plan.schedule]++;
        for (int f = 0; ms_plan_features[f].name != NULL; f++)
            counts[f] += ms_plan_features[f].has(c.model, &c.plan);
        ms_arena_close(cx.arena);
    }
    int num_rare = 0;
    for (int f = 0; ms_plan_features[f].name != NULL; f++) {
        printf("%5ld %s\n", counts[f], ms_plan_features[f].name);
        num_rare += counts[f] < least;
    }
    for (int kind = 0; kind < MS_CUSTOM; kind++) {
        printf("%5ld %s\n", schedules[kind], ms_schedule_names[kind]);
        num_rare += schedules[kind] < least;
    }
    ASSERT_INT(num_rare, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_feature_is_drawn),
        cmocka_unit_test(random_plans_equal_one_rank_in_fp64),
        cmocka_unit_test(random_plans_equal_one_rank_in_fp32),
        cmocka_unit_test(random_plans_in_bf16_are_near_one_rank_in_fp32),
        cmocka_unit_test(random_plans_in_fp8_are_near_one_rank_in_fp32),
        cmocka_unit_test(adapters_equal_those_of_one_rank),
        cmocka_unit_test(adapters_in_bf16_are_near_one_rank_in_fp32),
        cmocka_unit_test(bases_in_nf4_equal_their_restored_weights),
        cmocka_unit_test(limited_experts_equal_those_of_one_rank),
        cmocka_unit_test(gathered_tokens_equal_those_of_one_rank),
        cmocka_unit_test(quantized_gathers_keep_what_codes_represent),
        cmocka_unit_test(quantized_reductions_round_gradients),
        cmocka_unit_test(modules_equal_saved_activations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
