/* Runs with every optimizer of a plan: random plans give what one rank gives, and the
 * states are those of the memory model. */
#include "tests/support/run_cases.h"
#include "tests/test.h"

#include <math.h>

#define NUM_PLANS TEST_CASES(60, 10) /* random plans of each optimizer */

/* Whether some gradients are 0 but for rounding, to which Lion and Adafactor give the size
 * of any other: of key biases, which softmax does not see. */
static bool has_zero_gradients(const ms_model *model)
{
    return model->qkv_bias || model->attention_out_bias;
}

static int num_wrong(ms_optimizer optimizer, const ms_run_tolerance *how, uint64_t seed)
{
    int wrong = 0;
    for (long i = 0, done = 0; done < NUM_PLANS; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_run_case c = ms_run_case_draw(&cx, how, seed, i, 0);
        c.plan.optimizer = optimizer;
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

static void sharded_updates_are_those_of_one_rank(void **state)
{
    (void)state;
    ASSERT_INT(num_wrong(MS_OPTIMIZER_SGD, &ms_run_fp64, 41), 0);
    ASSERT_INT(num_wrong(MS_OPTIMIZER_LION, &ms_run_fp64, 42), 0);
    ASSERT_INT(num_wrong(MS_OPTIMIZER_ADAFACTOR, &ms_run_fp64, 43), 0);
    ASSERT_INT(num_wrong(MS_OPTIMIZER_MUON, &ms_run_fp64, 44), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharded_updates_are_those_of_one_rank),
        cmocka_unit_test(the_first_step_in_8_bits_is_that_of_one_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
