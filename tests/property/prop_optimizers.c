/* Runs with every optimizer of a plan: random plans give what one rank gives, and the
 * states are those of the memory model. */
#include "tests/support/run_cases.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

#define NUM_PLANS TEST_CASES(16, 6) /* random plans of each optimizer */

/* Whether some gradients are 0 but for rounding, to which Lion and Adafactor give the size
 * of any other: of key biases, which softmax does not see. */
static bool has_zero_gradients(const ms_model *model)
{
    return model->qkv_bias || model->attention_out_bias;
}

static int num_wrong_in(ms_storage moments, ms_optimizer optimizer,
                        const ms_run_tolerance *how, uint64_t seed)
{
    int wrong = 0;
    for (long i = 0, done = 0; done < NUM_PLANS; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_run_case c = ms_run_case_draw(&cx, how, seed, i, 0);
        c.plan.optimizer = optimizer;
        c.plan.optimizer_dtype = moments;
        if (!has_zero_gradients(c.model)) {
            done++;
            if (!ms_run_agrees(&cx, &c, &ms_backend_loop, how)) {
                printf("that was case %ld with %s\n", i, ms_optimizer_names[optimizer]);
                wrong++;
            }
        }
        ms_arena_close(cx.arena);
    }
    return wrong;
}

static int num_wrong(ms_optimizer optimizer, const ms_run_tolerance *how, uint64_t seed)
{
    return num_wrong_in(MS_STORE_DEFAULT, optimizer, how, seed);
}

static void sharded_updates_are_those_of_one_rank(void **state)
{
    (void)state;
    ASSERT_INT(num_wrong(MS_OPTIMIZER_SGD, &ms_run_fp64, 41), 0);
    ASSERT_INT(num_wrong(MS_OPTIMIZER_LION, &ms_run_fp64, 42), 0);
    ASSERT_INT(num_wrong(MS_OPTIMIZER_ADAFACTOR, &ms_run_fp64, 43), 0);
    ASSERT_INT(num_wrong(MS_OPTIMIZER_MUON, &ms_run_fp64, 44), 0);
}

/* Moments in fewer bits than the weights' are rounded alike on all meshes, but for those
 * halfway between two fp32 numbers: either moves a weight by at most rate x 2^-23, 1.2e-10,
 * where the largest weights are about 0.1. */
static void narrow_moments_are_those_of_one_rank(void **state)
{
    (void)state;
    ms_run_tolerance halfway = ms_run_fp64;
    halfway.updated = 1.2e-9;
    ASSERT_INT(num_wrong_in(MS_STORE_BF16, MS_OPTIMIZER_ADAMW, &ms_run_fp64, 46), 0);
    ASSERT_INT(num_wrong_in(MS_STORE_FP32, MS_OPTIMIZER_ADAMW, &halfway, 47), 0);
    ASSERT_INT(num_wrong_in(MS_STORE_BF16, MS_OPTIMIZER_MUON, &ms_run_fp64, 48), 0);
    ASSERT_INT(num_wrong_in(MS_STORE_BF16, MS_OPTIMIZER_ADAFACTOR, &ms_run_fp64, 49), 0);
}

/* Blocks of moments in 8 bits end where shards do, so that only the first step is equal. */
static void the_first_step_in_8_bits_is_that_of_one_rank(void **state)
{
    (void)state;
    ms_run_tolerance first = ms_run_fp64;
    first.later_loss = 1e-2;
    first.updated = HUGE_VAL;
    ASSERT_INT(num_wrong(MS_OPTIMIZER_ADAM_8BIT, &first, 45), 0);
}

/* Where shards end with blocks they have the blocks, and so the weights, of one rank. */
static void whole_blocks_in_8_bits_are_those_of_one_rank(void **state)
{
    (void)state;
    static const struct {
        long dp_shard, pp, zero;
    } meshes[] = {{2, 1, 0}, {2, 1, 1}, {2, 1, 2}, {2, 1, 3}, {1, 2, 0}, {2, 2, 1}};
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        ms_ctx *cx = test_cx();
        ms_model *model = MS_NEW(cx->arena, ms_model);
        *model = *ms_pubrun_model(cx->arena, ms_small_llama);
        model->hidden = 256; /* whole blocks of 256 in each shard of a layer */
        model->final_norm = false;
        ms_run_case c = {.model = model, .plan = ms_run_base_plan(), .stack = "meshsim"};
        c.plan.size[MS_DP_SHARD] = meshes[i].dp_shard;
        c.plan.size[MS_PP] = meshes[i].pp;
        c.plan.gpus = meshes[i].dp_shard * meshes[i].pp;
        c.plan.zero = meshes[i].zero;
        c.plan.reshard_after_forward = true;
        c.plan.microbatch = 2;
        c.plan.optimizer = MS_OPTIMIZER_ADAM_8BIT;
        assert_true(ms_run_agrees(cx, &c, &ms_backend_loop, &ms_run_fp64));
    }
}

/* Plans are refused, as on GPUs, with the choice's name. */
static void backends_without_kernels_refuse(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_array_ops arrays = *ms_backend_loop.arrays;
    ms_backend backend = ms_backend_loop;
    ms_plan plans[2] = {ms_run_base_plan(), ms_run_base_plan()};
    static const char *const messages[2] = {"does not execute --optimizer lion",
                                            "does not execute --grad-dtype bf16"};
    arrays.orthogonalize = NULL;
    backend.arrays = &arrays;
    plans[0].optimizer = MS_OPTIMIZER_LION;
    plans[1].grad_dtype = MS_STORE_BF16;
    for (int i = 0; i < 2; i++) {
        ms_runner_options options = ms_run_options(model, &plans[i], MS_REAL_FP32);
        ms_outcome out;
        ASSERT_INT(ms_run_plan(cx, model, &plans[i], "meshsim", &backend, &options, &out),
                   MS_EINPUT);
        assert_non_null(strstr(test_messages(cx), messages[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharded_updates_are_those_of_one_rank),
        cmocka_unit_test(narrow_moments_are_those_of_one_rank),
        cmocka_unit_test(the_first_step_in_8_bits_is_that_of_one_rank),
        cmocka_unit_test(whole_blocks_in_8_bits_are_those_of_one_rank),
        cmocka_unit_test(backends_without_kernels_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
