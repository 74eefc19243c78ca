/* Bytes of parameters, gradients and optimizer states against published tables: ZeRO
 * (Rajbhandari et al. 2020) and the Ultra-Scale Playbook (Hugging Face 2025). */
#include "sim/step/prediction.h"

#include "tests/test.h"

#define GIB 1073741824.0

static double states_bytes(double params, const double bytes[4], ms_sharding sharding,
                           double shards, double inputs[MS_NUM_MEMORY_CATEGORIES])
{
    ms_stack stack = {.param_bytes = {.value = bytes[0]},
                      .grad_bytes = {.value = bytes[1]},
                      .master_bytes = {.value = bytes[2]},
                      .moment_bytes = {.value = bytes[3]}};
    ms_cluster cluster = {0};
    ms_workload workload = {.stack = &stack, .cluster = &cluster};
    ms_rank_load load = {.dense_params = params};
    ms_shard_sizes sizes = {.dense = shards, .expert = shards};
    ms_rank_memory(&workload, &load, sharding, &sizes, inputs);
    double sum = 0.0;
    for (int i = 0; i < MS_NUM_MEMORY_CATEGORIES; i++)
        sum += inputs[i];
    return sum;
}

/* Playbook's plot of ZeRO on 8 ranks: GiB of 8B parameters, 2 + 2 + 8 bytes each. */
static void zero_stages_divide_the_states(void **state)
{
    (void)state;
    const double bytes[4] = {2, 2, 0, 8};
    const struct {
        ms_sharding sharding;
        double gib[3];
    } rows[] = {{MS_ZERO_0, {14.96, 14.96, 59.83}},
                {MS_ZERO_1, {14.96, 14.96, 7.48}},
                {MS_ZERO_2, {14.96, 1.87, 7.48}},
                {MS_ZERO_3, {1.87, 1.87, 7.48}}};
    for (int i = 0; i < 4; i++) {
        double inputs[MS_NUM_MEMORY_CATEGORIES];
        states_bytes(8030261248.0, bytes, rows[i].sharding, 8.0, inputs);
        ASSERT_NEAR(inputs[MS_MEMORY_PARAMS] / GIB, rows[i].gib[0], 5e-4);
        ASSERT_NEAR(inputs[MS_MEMORY_GRADS] / GIB, rows[i].gib[1], 5e-4);
        ASSERT_NEAR(inputs[MS_MEMORY_OPTIMIZER] / GIB, rows[i].gib[2], 5e-4);
    }
}

/* Bytes a parameter of ZeRO stages 0 to 3 on d ranks with K = 12 of optimizer state: 4 +
 * K, 4 + K/d, 2 + (2 + K)/d, (4 + K)/d (Rajbhandari et al. 2020, section 5); 120, 31.4,
 * 16.6 and 1.9 GB for 7.5 B parameters on 64 ranks (figure 1). */
static void zero_formulas(void **state)
{
    (void)state;
    const double bytes[4] = {2, 2, 4, 8};
    const double gb[] = {120, 31.4, 16.6, 1.9};
    for (int i = 0; i < 4; i++) {
        double inputs[MS_NUM_MEMORY_CATEGORIES];
        double got =
            states_bytes(7.5e9, bytes, (ms_sharding)(MS_ZERO_0 + i), 64.0, inputs);
        double k = 12, d = 64;
        const double want[] = {4 + k, 4 + k / d, 2 + (2 + k) / d, (4 + k) / d};
        ASSERT_NEAR(got, 7.5e9 * want[i], 1e-15);
        ASSERT_NEAR(got / 1e9, gb[i], 0.015);
    }
}

/* Playbook's bytes a parameter: weights, gradients, master weights, moments; sum. */
static void precisions_add_up(void **state)
{
    (void)state;
    const struct {
        double bytes[4], total;
    } rows[] = {
        {{4, 4, 0, 8}, 16},     /* fp32 training, and fp8 of Transformer Engine */
        {{2, 2, 4, 8}, 16},     /* bf16 training */
        {{2, 2 + 4, 4, 8}, 20}, /* bf16 with fp32 gradient accumulation */
        {{1, 1 + 2, 2, 3}, 9},  /* fp8 recipe of FP8-LM */
        {{1, 2 + 4, 4, 4}, 15}, /* fp8 recipe of DeepSeek-V3 */
        {{1, 1 + 4, 2, 2}, 10}, /* fp8 recipe of nanotron */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double inputs[MS_NUM_MEMORY_CATEGORIES];
        ASSERT_NEAR(states_bytes(1e9, rows[i].bytes, MS_ZERO_0, 1.0, inputs),
                    1e9 * rows[i].total, 0);
    }
}

/* Shipped stacks have the published bytes a parameter of their frameworks. */
static void stacks_keep_the_published_bytes(void **state)
{
    (void)state;
    const struct {
        const char *stack;
        double total;
    } rows[] = {{"megatron-2021", 16},   {"nanotron", 20}, {"torchtitan", 16},
                {"torchtitan-2024", 16}, {"simumax", 18},  {"megatron", 18}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_ctx *cx = test_cx();
        const ms_stack *stack;
        ASSERT_OK(ms_stack_load(cx, rows[i].stack, &stack), cx);
        ASSERT_NEAR(stack->param_bytes.value + stack->grad_bytes.value +
                        stack->bucket_bytes.value + stack->master_bytes.value +
                        stack->moment_bytes.value,
                    rows[i].total, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_stages_divide_the_states),
        cmocka_unit_test(zero_formulas),
        cmocka_unit_test(precisions_add_up),
        cmocka_unit_test(stacks_keep_the_published_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
