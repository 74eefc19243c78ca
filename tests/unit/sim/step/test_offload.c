/* Tensors in host memory: their bytes, the seconds of their copies, and an optimizer that
 * runs on the host. */
#include "costmodel/cost/bill.h"
#include "sim/simulate/simulation.h"
#include "sim/step/offload.h"
#include "sim/step/prediction.h"

#include "tests/test.h"

typedef struct bench {
    ms_plan plan;
    ms_workload *workload;
    ms_prediction prediction;
} bench;

/* Workloads of the test that runs, which its teardown closes. */
static ms_workload *opened[8];
static int num_opened;

static int close_workloads(void **state)
{
    (void)state;
    while (num_opened > 0)
        ms_workload_close(opened[--num_opened]);
    return 0;
}

static ms_plan base_plan(const char *cluster, const char *stack)
{
    ms_plan plan = ms_plan_default(8);
    plan.model = "llama-3.2-1b";
    plan.cluster = cluster;
    plan.stack = stack;
    plan.sequence_length = 4096;
    plan.global_batch = 8;
    ms_plan_fill_defaults(&plan);
    return plan;
}

static bench *predicted(ms_ctx *cx, const ms_plan *plan)
{
    bench *b = MS_NEW(cx->arena, bench);
    b->plan = *plan;
    ASSERT_OK(ms_workload_open(cx, &b->plan, &b->workload), cx);
    assert_true(num_opened < (int)(sizeof opened / sizeof *opened));
    opened[num_opened++] = b->workload;
    ASSERT_OK(ms_predict(cx, b->workload, &b->plan, &b->prediction), cx);
    return b;
}

static double categories(const bench *b, ms_memory_category category)
{
    return b->prediction.memory[category];
}

static void activations_on_the_host_take_a_link(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = base_plan("hgx-h100", "megatron");
    double before_s = predicted(cx, &plan)->prediction.step_s;
    plan.offload_activations_frac = 0.01;
    bench *few = predicted(cx, &plan);
    ASSERT_NEAR(few->prediction.step_s, before_s, 1e-12); /* hidden */
    plan.offload_activations_frac = 1.0;
    bench *all = predicted(cx, &plan);
    assert_true(all->prediction.step_s > before_s);
    assert_true(categories(all, MS_MEMORY_ACTIVATIONS) <
                categories(few, MS_MEMORY_ACTIVATIONS));
    /* layers wait for copies of all of their bytes, in forward and in backward */
    ms_planned planned;
    ms_planned_open(cx, all->workload, &all->plan, &planned);
    const ms_block_cost *layer = &planned.blocks.layer[0][all->plan.recompute];
    double copy_s = layer->memory.host_bytes / 55e9;
    ASSERT_NEAR(layer->memory.saved.activation_bytes, 0, 0);
    ASSERT_NEAR(layer->forward_s, copy_s, 1e-12);
    assert_true(layer->backward_s >= copy_s);
    assert_true(all->prediction.host_bytes >= 16.0 * layer->memory.host_bytes);
    ASSERT_NEAR(few->prediction.host_bytes, 0.01 * all->prediction.host_bytes, 1.0);
}

static void layer_inputs_are_what_full_recomputation_saves(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = base_plan("hgx-h100", "megatron");
    plan.recompute = MS_RECOMPUTE_FULL;
    plan.offload_layer_inputs = true;
    bench *b = predicted(cx, &plan);
    ms_planned planned;
    ms_planned_open(cx, b->workload, &b->plan, &planned);
    const ms_bill_memory *memory = &planned.blocks.layer[0][MS_RECOMPUTE_FULL].memory;
    ASSERT_NEAR(memory->host_bytes, 2.0 * 4096.0 * 2048.0, 0);
    ASSERT_NEAR(memory->saved.activation_bytes, 0, 0);
}

/* Layer inputs whole, and of all other bytes a share, in whole bytes. */
static void shares_are_whole_bytes(void **state)
{
    (void)state;
    ms_stack stack = {.host_activation_frac = {.value = 0.3}};
    ASSERT_NEAR(ms_bill_host_bytes(&stack, 1001, 0), 300, 0);
    ASSERT_NEAR(ms_bill_host_bytes(&stack, 1001, 100), 100 + 270, 0);
    stack.host_activation_frac.value = 1.0;
    ASSERT_NEAR(ms_bill_host_bytes(&stack, 1001, 100), 1001, 0);
}

/* Two GPUs of a DGX A100 share a link, and eight a host's memory. */
static void ranks_share_links_and_memory(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = base_plan("hgx-a100-80g", "deepspeed");
    bench *b = predicted(cx, &plan);
    ms_links one = {.world_span = {.size = 1}}, eight = {.world_span = {.size = 8}};
    ASSERT_NEAR(ms_host_copy_s(b->workload, &one, 25e9), 1, 1e-12);
    ASSERT_NEAR(ms_host_copy_s(b->workload, &eight, 25e9), 2, 1e-12);
    ms_stack *stack = MS_NEW(cx->arena, ms_stack);
    *stack = *b->workload->stack;
    stack->host_optimizer = MS_HOST_UPDATE;
    b->workload->stack = stack;
    double update_s = 52e9 / (0.43 * 409.6e9);
    ASSERT_NEAR(ms_states_update_s(b->workload, &one, 1e9), update_s + 2.0 / 25.0, 1e-9);
    ASSERT_NEAR(ms_states_update_s(b->workload, &eight, 1e9), 8.0 * update_s + 2.0 / 12.5,
                1e-9);
    stack->offloads_gradients = false; /* gradients go down after backward, too */
    ASSERT_NEAR(ms_states_update_s(b->workload, &one, 1e9), update_s + 4.0 / 25.0, 1e-9);
    stack->host_optimizer = MS_HOST_STATES;
    ASSERT_NEAR(ms_states_update_s(b->workload, &one, 1e9), 12.0 / 25.0, 1e-9);
    stack->host_optimizer =
        MS_HOST_UPDATE; /* parameters come down if there is no master copy */
    stack->master_bytes.value = 0.0;
    ASSERT_NEAR(ms_states_update_s(b->workload, &one, 1e9), update_s + 6.0 / 25.0, 1e-9);
}

static void an_optimizer_on_the_host_leaves_the_device(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = base_plan("hgx-h100", "deepspeed");
    bench *device = predicted(cx, &plan);
    plan.offload_optimizer = MS_HOST_STATES;
    bench *states = predicted(cx, &plan);
    plan.offload_optimizer = MS_HOST_UPDATE;
    bench *update = predicted(cx, &plan);
    assert_true(categories(device, MS_MEMORY_OPTIMIZER) > 0.0);
    ASSERT_NEAR(categories(states, MS_MEMORY_OPTIMIZER), 0, 0);
    ASSERT_NEAR(categories(update, MS_MEMORY_OPTIMIZER), 0, 0);
    ASSERT_NEAR(categories(states, MS_MEMORY_GRADS) - categories(update, MS_MEMORY_GRADS),
                2.0 * 1235814400.0 / 8.0, 1.0);
    ASSERT_NEAR(device->prediction.host_bytes, 0, 0);
    ASSERT_NEAR(states->prediction.host_bytes, 12.0 * 1235814400.0 / 8.0, 1.0);
    ASSERT_NEAR(update->prediction.host_bytes, 14.0 * 1235814400.0 / 8.0, 1.0);
    assert_true(device->prediction.optimizer_s < states->prediction.optimizer_s);
    assert_true(states->prediction.optimizer_s < update->prediction.optimizer_s);
}

/* Every path of a simulation has the seconds of the prediction. */
static void simulations_take_as_long(void **state)
{
    (void)state;
    static const ms_host_optimizer optimizers[] = {MS_HOST_STATES, MS_HOST_UPDATE};
    for (int i = 0; i < 2; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = base_plan("hgx-h100", "deepspeed");
        plan.offload_activations_frac = 0.9;
        plan.offload_optimizer = optimizers[i];
        bench *b = predicted(cx, &plan);
        ms_simulate_options options = {0};
        ms_simulation simulation;
        ms_planned planned;
        ms_planned_open(cx, b->workload, &b->plan, &planned);
        ASSERT_OK(ms_simulate(cx, &planned, &options, &simulation), cx);
        ASSERT_NEAR(simulation.step_s, b->prediction.step_s, 1e-9);
    }
}

/* Gathers of 8 bits have half of the bytes of 16, and cost traffic of device memory. */
static void quantized_communication_has_fewer_bytes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = base_plan("h100-roce", "deepspeed");
    plan.gpus = plan.size[MS_DP_SHARD] = 64;
    plan.global_batch = 64;
    bench *before = predicted(cx, &plan);
    plan.gather_bits = MS_QUANTISED_8;
    plan.reduce_bits = MS_QUANTISED_4;
    bench *after = predicted(cx, &plan);
    ms_planned wide, narrow;
    ms_planned_open(cx, before->workload, &before->plan, &wide);
    ms_planned_open(cx, after->workload, &after->plan, &narrow);
    const ms_block_cost *a = &wide.blocks.layer[0][plan.recompute];
    const ms_block_cost *b = &narrow.blocks.layer[0][plan.recompute];
    double stream_s = ms_stream_s(&after->workload->pricer, a->dense_params);
    const ms_collective_law *gather = &narrow.links.gather[MS_SYNC_FSDP];
    const ms_collective_law *reduce = &narrow.links.reduce[MS_SYNC_FSDP];
    /* an fp32 scale for 4096 elements beside codes of 1 and 1/2 byte */
    const double byte = 1.0 + 1.0 / 1024.0, half = 0.5 + 1.0 / 1024.0;
    ASSERT_NEAR(b->gather_s,
                ms_collective_s(gather, byte * a->dense_params) +
                    stream_s * (2.0 + byte) * 65.0 / 64.0,
                1e-12);
    ASSERT_NEAR(b->reduce_s,
                ms_collective_s(reduce, half * a->dense_params) +
                    stream_s * (2.0 * half + 2.0 * 65.0 / 64.0),
                1e-12);
    assert_true(b->gather_s < a->gather_s && b->reduce_s < a->reduce_s);
    assert_true(after->prediction.step_s < before->prediction.step_s);
    ms_simulate_options options = {0};
    ms_simulation simulation;
    ASSERT_OK(ms_simulate(cx, &narrow, &options, &simulation), cx);
    ASSERT_NEAR(simulation.step_s, after->prediction.step_s, 0.02);
}

static void what_is_not_known_is_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_workload *workload;
    ms_plan plan = base_plan("tpu-v6e", "maxtext");
    plan.offload_layer_inputs = true;
    assert_int_equal(ms_workload_open(cx, &plan, &workload), MS_EINPUT);
    plan = base_plan("hgx-h100", "torchtitan");
    plan.offload_optimizer = MS_HOST_UPDATE;
    assert_int_equal(ms_workload_open(cx, &plan, &workload), MS_EINPUT);
    plan = base_plan("h100-pcie", "megatron");
    plan.offload_optimizer = MS_HOST_UPDATE;
    assert_int_equal(ms_workload_open(cx, &plan, &workload), MS_EINPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(activations_on_the_host_take_a_link, close_workloads),
        cmocka_unit_test_teardown(layer_inputs_are_what_full_recomputation_saves,
                                  close_workloads),
        cmocka_unit_test(shares_are_whole_bytes),
        cmocka_unit_test_teardown(ranks_share_links_and_memory, close_workloads),
        cmocka_unit_test_teardown(an_optimizer_on_the_host_leaves_the_device,
                                  close_workloads),
        cmocka_unit_test_teardown(simulations_take_as_long, close_workloads),
        cmocka_unit_test_teardown(quantized_communication_has_fewer_bytes,
                                  close_workloads),
        cmocka_unit_test_teardown(what_is_not_known_is_refused, close_workloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
