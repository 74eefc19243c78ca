/* Units and buckets of parameters and gradients, copies of parameters on fewer ranks, and
 * partitioned layer inputs: bytes, seconds and memory. */
#include "sim/simulate/simulation.h"
#include "sim/step/prediction.h"
#include "sim/step/sync_units.h"

#include "base/rng.h"
#include "tests/test.h"

/* ---- splits ---- */

static void buckets_have_all_bytes(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(3);
    for (int trial = 0; trial < 2000; trial++) {
        double layers = 1.0 + (double)ms_rng_below(&rng, 8);
        double bytes = 1e6 * (1.0 + (double)ms_rng_below(&rng, 1000));
        ms_stack stack = {.sync_bucket_bytes = 1e6 * (double)ms_rng_below(&rng, 3000)};
        ms_bill bill = {.num_matrices = {7.0, 24.0}};
        bool expert = trial % 2 == 1;
        ms_sync_split split = ms_sync_split_of(&stack, &bill, expert, layers, bytes);
        ASSERT_NEAR(split.size_bytes * split.per_block, bytes, 1e-12);
        double pieces = split.per_block * layers;
        ASSERT_NEAR(pieces, round(pieces), 1e-12);
        bool is_whole = pieces > layers * bill.num_matrices[expert] - 0.5;
        assert_true(stack.sync_bucket_bytes <= 0.0 || is_whole ||
                    split.size_bytes <= stack.sync_bucket_bytes * (1 + 1e-12));
        /* no more pieces than the bucket needs */
        assert_true(pieces < 1.5 ||
                    (pieces - 1.0) * stack.sync_bucket_bytes < layers * bytes);
    }
}

static void shares_of_a_unit_cost_what_it_costs(void **state)
{
    (void)state;
    ms_collective_law law = {.num_algorithms = 1, .wire_frac = 1.0};
    law.algorithm[0].alpha_s = 3.0;
    law.algorithm[0].beta_s_per_byte = 2.0;
    ms_stack stack = {0};
    ms_bill bill = {.num_matrices = {4.0, 0.0}};
    ASSERT_NEAR(ms_sync_s(&law, ms_sync_split_of(&stack, &bill, false, 1, 10)), 23, 0);
    /* 4 layers: a latency each fourth */
    ASSERT_NEAR(4.0 * ms_sync_s(&law, ms_sync_split_of(&stack, &bill, false, 4, 10)), 83,
                1e-12);
    stack.sync_bucket_bytes = 5.0; /* 2 pieces of a layer: two latencies */
    ASSERT_NEAR(ms_sync_s(&law, ms_sync_split_of(&stack, &bill, false, 1, 10)), 26, 0);
    stack.sync_bucket_bytes = 1.0; /* 4 matrices, which are not cut */
    ASSERT_NEAR(ms_sync_s(&law, ms_sync_split_of(&stack, &bill, false, 1, 10)), 32, 0);
}

/* ---- plans ---- */

typedef struct bench {
    ms_ctx *cx;
    ms_plan plan;
    ms_workload *workload;
    ms_prediction prediction;
    ms_planned planned;
} bench;

static bench open_bench(const ms_plan *plan)
{
    bench b = {.cx = test_cx(), .plan = *plan};
    ASSERT_OK(ms_workload_open(b.cx, &b.plan, &b.workload), b.cx);
    ASSERT_OK(ms_predict(b.cx, b.workload, &b.plan, &b.prediction), b.cx);
    ms_planned_open(b.cx, b.workload, &b.plan, &b.planned);
    return b;
}

static ms_plan base_plan(const char *cluster, const char *stack, long gpus)
{
    ms_plan plan = ms_plan_default(gpus);
    plan.model = "llama-3.1-8b";
    plan.cluster = cluster;
    plan.stack = stack;
    plan.sequence_length = 4096;
    plan.global_batch = 2 * gpus;
    ms_plan_fill_defaults(&plan);
    return plan;
}

static double node_step_s(bench *b)
{
    ms_simulate_options options = {.engine = MS_ENGINE_REPLAY, .detail = MS_DETAIL_NODE};
    ms_simulation simulation;
    ASSERT_OK(ms_simulate(b->cx, &b->planned, &options, &simulation), b->cx);
    return simulation.step_s;
}

/* Sums of a rank's transfers of parameters and gradients. */
typedef struct totals {
    double bytes, count, seconds;
} totals;

static totals totals_of(const bench *b)
{
    ms_traffic traffic = ms_traffic_make(b->cx, &b->planned, 0);
    totals t = {0};
    for (int i = 0; i < traffic.num_entries; i++) {
        const ms_traffic_entry *e = &traffic.entries[i];
        if (e->phase != MS_TRAFFIC_PARAMS && e->phase != MS_TRAFFIC_GRADS)
            continue;
        t.bytes += e->count * e->size_bytes;
        t.count += e->count;
        t.seconds += e->count * e->one_s;
    }
    return t;
}

/* Gathers and reductions of blocks, from the sums over a stage. */
static double moved_s(const bench *b)
{
    const ms_block_cost *sum = &b->planned.stages[0].sum;
    return 2.0 * (2.0 * sum->gather_s - sum->regather_saved_s + sum->reduce_s) +
           sum->replicate_s;
}

static void check_plan(const ms_plan *plan, double bytes, double *count)
{
    bench b = open_bench(plan);
    totals t = totals_of(&b);
    ASSERT_NEAR(t.bytes, bytes, 1e-12);
    ASSERT_NEAR(t.seconds, moved_s(&b), 1e-9);
    ASSERT_NEAR(node_step_s(&b), b.prediction.step_s, 1e-9);
    *count = t.count;
    ms_workload_close(b.workload);
}

/* Closed form, list of collectives and simulation agree, whatever the unit. */
static void units_and_buckets_move_the_same_bytes(void **state)
{
    (void)state;
    ms_plan plan = base_plan("hgx-h100", "torchtitan", 32);
    bench plain = open_bench(&plan);
    double bytes = totals_of(&plain).bytes, each = totals_of(&plain).count, count;
    ms_workload_close(plain.workload);
    for (long layers = 2; layers <= 7; layers++) { /* 7 leave a unit of 4 */
        ms_plan units = plan;
        units.unit_layers = layers;
        check_plan(&units, bytes, &count);
        /* 6 collectives a step of each block: 2 micro-batches gather twice, reduce once */
        ASSERT_NEAR(count, each - 6.0 * 32.0 * (1.0 - 1.0 / (double)layers), 1e-9);
    }
    ms_plan buckets = plan;
    buckets.bucket_bytes = 25e6;
    check_plan(&buckets, bytes, &count);
    assert_true(count > 2.0 * each);
    buckets.bucket_bytes = 2e9;
    check_plan(&buckets, bytes, &count);
    assert_true(count < 0.5 * each);
}

static void units_are_gathered_as_a_whole(void **state)
{
    (void)state;
    ms_plan plan = base_plan("hgx-h100", "torchtitan", 32);
    bench one = open_bench(&plan);
    plan.unit_layers = 4;
    bench four = open_bench(&plan);
    double layer = one.planned.blocks.layer[0][plan.recompute].dense_params;
    const ms_stack *stack = one.workload->stack;
    /* two gathered units and the gradients of one; the embedding is no unit of these */
    double unit_bytes =
        2.0 * stack->param_comm_bytes.value + stack->grad_comm_bytes.value;
    ASSERT_NEAR(four.prediction.memory[MS_MEMORY_GATHERED_PARAMS],
                4.0 * layer * unit_bytes, 1e-9);
    assert_true(four.prediction.memory[MS_MEMORY_GATHERED_PARAMS] >
                one.prediction.memory[MS_MEMORY_GATHERED_PARAMS]);
    ms_workload_close(one.workload);
    ms_workload_close(four.workload);
}

/* ---- hpZ ---- */

static double nic_bytes(const bench *b)
{
    double bytes = 0.0;
    for (int axis = 0; axis < b->prediction.num_axes; axis++)
        bytes += b->prediction.axes[axis].nic_bytes;
    return bytes;
}

/* ZeRO++ (Wang et al. 2023, arXiv 2306.10209, section 3.2): with a copy on
 * each node the backward's gather does not cross nodes, for a copy of 2 bytes a parameter
 * over the ranks of a node. */
static void backward_gathers_inside_a_node(void **state)
{
    (void)state;
    ms_plan plan = base_plan("h100-roce", "deepspeed", 64);
    bench whole = open_bench(&plan);
    plan.reshard_ranks = 8;
    bench node = open_bench(&plan);
    const ms_span *span = &node.planned.links.sync_span[MS_SYNC_SECONDARY];
    ASSERT_INT(span->size, 8);
    ASSERT_INT(span->tier, 0);
    const ms_block_cost *layer = &node.planned.blocks.layer[0][plan.recompute];
    double bytes = node.workload->stack->param_comm_bytes.value * layer->dense_params;
    ASSERT_NEAR(layer->gather_s - layer->regather_saved_s,
                ms_collective_s(&node.planned.links.gather[MS_SYNC_SECONDARY], bytes),
                1e-12);
    assert_true(node.prediction.step_s < whole.prediction.step_s);
    double copy_bytes = node.prediction.memory[MS_MEMORY_GATHERED_PARAMS] -
                        whole.prediction.memory[MS_MEMORY_GATHERED_PARAMS];
    ASSERT_NEAR(copy_bytes, 2.0 * node.planned.stages[0].sum.dense_params / 8.0, 1e-9);
    ASSERT_NEAR(node_step_s(&node), node.prediction.step_s, 1e-9);
    /* one of three equal transfers, forward and backward gather and reduction, is gone;
     * with 8 bits in gathers and 4 in reductions 1 and 0.5 of these 6 bytes are left, with
     * a scale of 4 bytes for 4096 elements each */
    plan.gather_bits = MS_QUANTISED_8;
    plan.reduce_bits = MS_QUANTISED_4;
    bench all = open_bench(&plan);
    ASSERT_NEAR(nic_bytes(&node), nic_bytes(&whole) * 2.0 / 3.0, 1e-9);
    ASSERT_NEAR(nic_bytes(&all), nic_bytes(&whole) * (1.5 + 8.0 / 4096.0) / 6.0, 1e-9);
    assert_true(all.prediction.step_s < node.prediction.step_s);
    ms_workload_close(whole.workload);
    ms_workload_close(node.workload);
    ms_workload_close(all.workload);
}

static void ranks_of_a_copy_divide_the_shards(void **state)
{
    (void)state;
    ms_plan plan = base_plan("hgx-h100", "generic", 48);
    plan.global_batch = 96;
    bench b = open_bench(&plan);
    plan.reshard_ranks = 16;
    ASSERT_INT(ms_plan_refusal(&plan, b.workload->model), MS_LEGAL);
    plan.reshard_ranks = 32;
    ASSERT_INT(ms_plan_refusal(&plan, b.workload->model), MS_REFUSE_ZERO);
    plan.zero = 1;
    ASSERT_INT(ms_plan_refusal(&plan, b.workload->model), MS_LEGAL);
    plan.zero = 3;
    plan.reshard_ranks = 48; /* all: no copy */
    ASSERT_INT(ms_plan_secondary_shards(&plan), 0);
    ms_workload_close(b.workload);
}

/* ---- partitioned layer inputs ---- */

/* ZeRO (Rajbhandari et al. 2020, section 6.1): saved inputs take 1 / tp of their bytes,
 * and backward gathers each once. */
static void layer_inputs_are_split_over_tp(void **state)
{
    (void)state;
    ms_plan plan = base_plan("hgx-h100", "generic", 8);
    plan.size[MS_TP] = 4;
    plan.size[MS_DP_SHARD] = 2;
    plan.sequence_parallel = false;
    plan.recompute = MS_RECOMPUTE_FULL;
    bench whole = open_bench(&plan);
    plan.partition_activations = true;
    bench parts = open_bench(&plan);
    double input_bytes = 2.0 * 4096 * 4096;
    double saved_bytes =
        whole.planned.blocks.layer[0][MS_RECOMPUTE_FULL].memory.saved.activation_bytes;
    ASSERT_NEAR(saved_bytes, input_bytes, 1e-12);
    ASSERT_NEAR(
        parts.planned.blocks.layer[0][MS_RECOMPUTE_FULL].memory.saved.activation_bytes,
        input_bytes / 4.0, 1e-12);
    double less_bytes = whole.prediction.memory[MS_MEMORY_ACTIVATIONS] -
                        parts.prediction.memory[MS_MEMORY_ACTIVATIONS];
    ASSERT_NEAR(less_bytes, 24.0 * input_bytes,
                0.05); /* 3/4 of 32 inputs; one is whole */
    const ms_bill *bill = parts.planned.bills->layer[0][MS_RECOMPUTE_FULL];
    double gathered_bytes = 0.0;
    for (int i = 0; i < bill->num_comms[MS_BILL_BACKWARD]; i++) {
        const ms_bill_comm *comm = &bill->comms[MS_BILL_BACKWARD][i];
        if (comm->axis == MS_BILL_TP && comm->collective == MS_ALL_GATHER)
            gathered_bytes += comm->count * comm->size_bytes;
    }
    ASSERT_NEAR(gathered_bytes, input_bytes, 1e-12);
    ASSERT_NEAR(node_step_s(&parts), parts.prediction.step_s, 1e-9);
    ms_workload_close(whole.workload);
    ms_workload_close(parts.workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_have_all_bytes),
        cmocka_unit_test(shares_of_a_unit_cost_what_it_costs),
        cmocka_unit_test(units_and_buckets_move_the_same_bytes),
        cmocka_unit_test(units_are_gathered_as_a_whole),
        cmocka_unit_test(backward_gathers_inside_a_node),
        cmocka_unit_test(ranks_of_a_copy_divide_the_shards),
        cmocka_unit_test(layer_inputs_are_split_over_tp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
