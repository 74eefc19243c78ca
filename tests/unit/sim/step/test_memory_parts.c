/* Memory of ranks made by hand, for every sharding: parameters, gradients, optimizer
 * states, gathered parameters and communicators; and the time of the optimizer. */
#include "sim/step/step.h"

#include "tests/test.h"

#include <math.h>

/* A rank with 1000 dense and 600 expert parameters, in blocks of 100 and 60, sharded
 * over 4 and 2 ranks. */
static const ms_rank_load load = {.dense_params = 1000,
                                  .expert_params = 600,
                                  .unit_dense_params = 100,
                                  .unit_expert_params = 60,
                                  .activation_bytes = 7000,
                                  .logits_bytes = 500,
                                  .buffer_bytes = 300};
static const ms_shard_sizes shards = {.dense = 4, .expert = 2, .num_communicators = 3};

static const ms_stack stack = {.param_bytes.value = 2,
                               .grad_bytes.value = 4,
                               .master_bytes.value = 4,
                               .moment_bytes.value = 8,
                               .param_comm_bytes.value = 2,
                               .grad_comm_bytes.value = 4,
                               .optimizer_bytes.value = 20};

static ms_workload *make_workload(const ms_stack *of)
{
    ms_ctx *cx = test_cx();
    ms_workload *workload = MS_NEW(cx->arena, ms_workload);
    ms_profile *profile = MS_NEW(cx->arena, ms_profile);
    workload->cluster = MS_NEW(cx->arena, ms_cluster);
    profile->communicator_bytes.value = 50;
    profile->context_bytes.value = 900;
    workload->profile = profile;
    workload->stack = of;
    workload->pricer.hbm_bytes_per_s = 100;
    workload->pricer.profile = profile;
    workload->pricer.stack = of;
    return workload;
}

static double part_of(ms_sharding sharding, const ms_shard_sizes *sizes,
                      ms_memory_category part)
{
    double parts[MS_NUM_MEMORY_CATEGORIES];
    ms_rank_memory(make_workload(&stack), &load, sharding, sizes, parts);
    return parts[part];
}

/* States are whole (1600 parameters) or a shard: 1000 / 4 + 600 / 2 = 550. */
static void states_are_whole_or_a_shard(void **state)
{
    (void)state;
    static const struct {
        ms_sharding sharding;
        double params, grads, optimizer;
    } rows[] = {{MS_ZERO_0, 1600, 1600, 1600},
                {MS_ZERO_1, 1600, 1600, 550},
                {MS_ZERO_2, 1600, 550, 550},
                {MS_ZERO_3, 550, 550, 550},
                {MS_ZERO_3_NO_RESHARD, 550, 1600, 550}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_sharding sharding = rows[i].sharding;
        ASSERT_NEAR(part_of(sharding, &shards, MS_MEMORY_PARAMS), 2 * rows[i].params, 0);
        ASSERT_NEAR(part_of(sharding, &shards, MS_MEMORY_GRADS), 4 * rows[i].grads, 0);
        ASSERT_NEAR(part_of(sharding, &shards, MS_MEMORY_OPTIMIZER),
                    12 * rows[i].optimizer, 0);
    }
}

/* Bytes of gather buffers: ZeRO-2 holds one block's gradients (160 x 4); ZeRO-3 holds
 * these and two blocks' parameters (2 x 160 x 2), or, if it keeps them, all parameters
 * (1600 x 2). */
static void units_are_gathered_as_the_sharding_asks(void **state)
{
    (void)state;
    const ms_memory_category gathered = MS_MEMORY_GATHERED_PARAMS;
    ASSERT_NEAR(part_of(MS_ZERO_0, &shards, gathered), 0, 0);
    ASSERT_NEAR(part_of(MS_ZERO_1, &shards, gathered), 0, 0);
    ASSERT_NEAR(part_of(MS_ZERO_2, &shards, gathered), 640, 0);
    ASSERT_NEAR(part_of(MS_ZERO_3, &shards, gathered), 640 + 640, 0);
    ASSERT_NEAR(part_of(MS_ZERO_3_NO_RESHARD, &shards, gathered), 3200, 0);
}

/* Parameters whose sharding group has one rank are whole already, so they need no
 * gathered copy. */
static void parameters_on_one_rank_are_not_gathered(void **state)
{
    (void)state;
    const ms_memory_category gathered = MS_MEMORY_GATHERED_PARAMS;
    const ms_shard_sizes no_dense = {.dense = 1, .expert = 2},
                         no_expert = {.dense = 4, .expert = 1},
                         none = {.dense = 1, .expert = 1};
    ASSERT_NEAR(part_of(MS_ZERO_3, &no_dense, gathered), 60 * 4 + 2 * 60 * 2, 0);
    ASSERT_NEAR(part_of(MS_ZERO_3, &no_expert, gathered), 100 * 4 + 2 * 100 * 2, 0);
    ASSERT_NEAR(part_of(MS_ZERO_3_NO_RESHARD, &no_expert, gathered), 2000, 0);
    ASSERT_NEAR(part_of(MS_ZERO_3, &none, gathered), 0, 0);
}

/* Fragmentation is a tenth of the allocated 1600 x (2 + 4 + 12) + 7000 + 500 + 300
 * bytes; the context and 3 communicators are part of them only if the framework counts
 * them. */
static void fragmentation_is_a_share_of_what_is_allocated(void **state)
{
    (void)state;
    ms_stack habits = stack;
    habits.fragmentation_frac.value = 0.1;
    ms_workload *workload = make_workload(&habits);
    double parts[MS_NUM_MEMORY_CATEGORIES];
    ms_rank_memory(workload, &load, MS_ZERO_0, &shards, parts);
    ASSERT_NEAR(parts[MS_MEMORY_FRAGMENTATION], 3660, 1e-12);
    ASSERT_NEAR(parts[MS_MEMORY_COMM_BUFFERS], 300, 0);
    ASSERT_NEAR(parts[MS_MEMORY_CONTEXT], 0, 0);
    habits.counts_context = true;
    ms_rank_memory(workload, &load, MS_ZERO_0, &shards, parts);
    ASSERT_NEAR(parts[MS_MEMORY_FRAGMENTATION], 3660, 1e-12);
    ASSERT_NEAR(parts[MS_MEMORY_COMM_BUFFERS], 300 + 3 * 50, 0);
    ASSERT_NEAR(parts[MS_MEMORY_CONTEXT], 900, 0);
}

/* A loss may need 0.4 of the 500 bytes of its logits once more; in a pipeline with several
 * micro-batches, those of a second one, too. */
static void a_loss_may_need_its_blocks_once_more(void **state)
{
    (void)state;
    ms_stack habits = stack;
    habits.loss_reserve_frac.value = 0.4;
    ms_links links = {0};
    links.pipeline_span.size = 2;
    ASSERT_INT(ms_shard_sizes_of(&links, 1).num_losses, 1);
    ms_shard_sizes sizes = ms_shard_sizes_of(&links, 2);
    double parts[MS_NUM_MEMORY_CATEGORIES];
    ms_rank_memory(make_workload(&habits), &load, MS_ZERO_0, &sizes, parts);
    ASSERT_NEAR(parts[MS_MEMORY_FRAGMENTATION], 400, 1e-12);
    links.pipeline_span.size = 1;
    sizes = ms_shard_sizes_of(&links, 2);
    ms_rank_memory(make_workload(&habits), &load, MS_ZERO_0, &sizes, parts);
    ASSERT_NEAR(parts[MS_MEMORY_FRAGMENTATION], 200, 1e-12);
}

/* The context (900 bytes), kernels loaded at start (60) and 3 communicators (50 each) are
 * inside or outside of the peak that the framework reports. */
static void what_a_framework_does_not_count_is_outside(void **state)
{
    (void)state;
    for (int counts = 0; counts < 2; counts++) {
        ms_stack habits = stack;
        habits.counts_context = counts == 1;
        habits.eager_kernels_bytes.value = 60;
        ms_workload *workload = make_workload(&habits);
        double parts[MS_NUM_MEMORY_CATEGORIES];
        ms_rank_memory(workload, &load, MS_ZERO_0, &shards, parts);
        double outside_bytes = ms_rank_outside_bytes(workload, &shards);
        ASSERT_NEAR(outside_bytes, counts == 1 ? 0 : 960 + 3 * 50, 0);
        double inside_bytes = parts[MS_MEMORY_CONTEXT] + parts[MS_MEMORY_COMM_BUFFERS];
        ASSERT_NEAR(inside_bytes + outside_bytes, 300 + 960 + 3 * 50, 0);
    }
}

/* A rank with 1600 parameters holds, besides their gradients of 4 bytes each: 2 bytes a
 * parameter in gradient buckets if it is data parallel, 3 bytes a parameter of late
 * gradients if it is in a pipeline, and 70 bytes of library workspace. None of these is
 * sharded. */
static void buckets_and_late_gradients_come_with_their_ranks(void **state)
{
    (void)state;
    ms_stack habits = stack;
    habits.bucket_bytes.value = 2;
    habits.late_grad_bytes.value = 3;
    habits.workspace_bytes.value = 70;
    ms_workload *workload = make_workload(&habits);
    for (int i = 0; i < 4; i++) {
        ms_shard_sizes sizes = shards;
        sizes.data_parallel = i % 2 == 1;
        sizes.pipeline = i >= 2;
        double parts[MS_NUM_MEMORY_CATEGORIES];
        ms_rank_memory(workload, &load, MS_ZERO_1, &sizes, parts);
        double more = (sizes.data_parallel ? 2 : 0) + (sizes.pipeline ? 3 : 0);
        ASSERT_NEAR(parts[MS_MEMORY_GRADS], (4 + more) * 1600, 0);
        ASSERT_NEAR(parts[MS_MEMORY_CONTEXT], 70, 0);
    }
}

/* Libraries take 70 bytes, on devices of other generations than Hopper and data-center
 * Blackwell 20, unless algorithms are deterministic; Transformer Engine 30, or 5 before
 * Hopper, and four times that more where a rank has experts. Without a figure of their own,
 * older devices have that of the others, as devices have whose capability is not stated. */
static void workspaces_are_those_of_the_device(void **state)
{
    (void)state;
    ms_stack habits = stack;
    habits.workspace_bytes.value = 70;
    habits.engine_workspace_bytes.value = 30;
    habits.older_engine_workspace_bytes.value = 5;
    habits.engine_streams.value = 4;
    ms_workload *workload = make_workload(&habits);
    ms_cluster cluster = {.device.memory_bytes = 1e6};
    workload->cluster = &cluster;
    ms_rank_load dense = load;
    dense.expert_params = 0;
    static const struct {
        double capability, older, dense, experts;
        bool deterministic;
    } cases[] = {{9.0, 20, 70 + 30, 70 + 5 * 30, false},
                 {10.3, 20, 70 + 30, 70 + 5 * 30, false},
                 {8.9, 20, 20 + 5, 20 + 5 * 5, false},
                 {8.9, 20, 70 + 5, 70 + 5 * 5, true},
                 {12.0, 20, 20 + 30, 20 + 5 * 30, false},
                 {8.0, 0, 70 + 5, 70 + 5 * 5, false},
                 {(double)NAN, 20, 70 + 30, 70 + 5 * 30, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cluster.device.compute_capability = cases[i].capability;
        habits.older_workspace_bytes.value = cases[i].older;
        habits.deterministic = cases[i].deterministic;
        double parts[MS_NUM_MEMORY_CATEGORIES];
        ms_rank_memory(workload, &dense, MS_ZERO_1, &shards, parts);
        ASSERT_NEAR(parts[MS_MEMORY_CONTEXT], cases[i].dense, 0);
        ms_rank_memory(workload, &load, MS_ZERO_1, &shards, parts);
        ASSERT_NEAR(parts[MS_MEMORY_CONTEXT], cases[i].experts, 0);
    }
}

/* Allocated are 28800 + 7800 bytes; fragmentation adds a tenth, the allocator's cache a
 * twentieth of both. Context and communicators take 900 + 3 x 50. */
static void kinds_add_what_their_figures_count(void **state)
{
    (void)state;
    ms_stack habits = stack;
    habits.fragmentation_frac.value = 0.1;
    habits.reserve_frac.value = 0.05;
    ms_workload *workload = make_workload(&habits);
    ms_cluster cluster = {.device.memory_bytes = 1e6};
    workload->cluster = &cluster;
    for (int counts = 0; counts < 2; counts++) {
        habits.counts_context = counts == 1;
        double parts[MS_NUM_MEMORY_CATEGORIES], kinds[MS_NUM_MEMORY_KINDS];
        ms_rank_memory(workload, &load, MS_ZERO_0, &shards, parts);
        for (int kind = 0; kind < MS_NUM_MEMORY_KINDS; kind++)
            kinds[kind] =
                ms_rank_memory_of_kind(workload, &shards, parts, (ms_memory_kind)kind);
        double used = 1.1 * 36600;
        ASSERT_NEAR(kinds[MS_MEMORY_AS_REPORTED], used + (counts == 1 ? 1050 : 0), 1e-12);
        ASSERT_NEAR(kinds[MS_MEMORY_ALLOCATED], 36600, 1e-12);
        ASSERT_NEAR(kinds[MS_MEMORY_ACTIVE], 36600, 1e-12);
        ASSERT_NEAR(kinds[MS_MEMORY_RESERVED], 1.05 * used, 1e-12);
        ASSERT_NEAR(kinds[MS_MEMORY_DEVICE], 1.05 * used + 1050, 1e-12);
        /* the cache gives back what the device does not have */
        cluster.device.memory_bytes = used + 1050 + 7;
        ASSERT_NEAR(ms_rank_memory_of_kind(workload, &shards, parts, MS_MEMORY_DEVICE),
                    used + 1050 + 7, 1e-12);
        cluster.device.memory_bytes = 1e6;
    }
}

/* 8-bit compute types keep 2 bytes of casts beside each of 1600 parameters of 2 bytes;
 * devices with FP4 keep one; parameters that are gathered as casts are kept as these. */
static void casts_of_parameters_stay(void **state)
{
    (void)state;
    ms_stack habits = stack;
    habits.cast_param_bytes.value = 2;
    ms_workload *workload = make_workload(&habits);
    ms_cluster cluster = {.device.memory_bytes = 1e6};
    cluster.device.peak_flop_per_s[MS_FP4] = (double)NAN;
    workload->cluster = &cluster;
    double parts[MS_NUM_MEMORY_CATEGORIES];
    workload->compute = MS_BF16;
    ms_rank_memory(workload, &load, MS_ZERO_0, &shards, parts);
    ASSERT_NEAR(parts[MS_MEMORY_PARAMS], 2 * 1600, 0);
    workload->compute = MS_FP8;
    ms_rank_memory(workload, &load, MS_ZERO_0, &shards, parts);
    ASSERT_NEAR(parts[MS_MEMORY_PARAMS], (2 + 2) * 1600, 0);
    habits.gathers_cast = true;
    ms_rank_memory(workload, &load, MS_ZERO_0, &shards, parts);
    ASSERT_NEAR(parts[MS_MEMORY_PARAMS], 2 * 1600, 0);
    cluster.device.peak_flop_per_s[MS_FP4] = 1;
    ms_rank_memory(workload, &load, MS_ZERO_0, &shards, parts);
    ASSERT_NEAR(parts[MS_MEMORY_PARAMS], 1600, 0);
}

/* Gradients of 1600 x 4 bytes are made while 7000 + 500 bytes of activations go: at no
 * time do they need more. With 100 bytes of activations they need the rest. */
static void freed_gradients_take_the_place_of_activations(void **state)
{
    (void)state;
    ms_stack habits = stack;
    habits.frees_gradients = true;
    ms_workload *workload = make_workload(&habits);
    double parts[MS_NUM_MEMORY_CATEGORIES];
    ms_rank_load only = load;
    ms_rank_memory(workload, &only, MS_ZERO_0, &shards, parts);
    ASSERT_NEAR(parts[MS_MEMORY_GRADS], 6400, 0);
    only.is_only_backward = true;
    ms_rank_memory(workload, &only, MS_ZERO_0, &shards, parts);
    ASSERT_NEAR(parts[MS_MEMORY_GRADS], 0, 0);
    only.activation_bytes = 100;
    only.logits_bytes = 0;
    ms_rank_memory(workload, &only, MS_ZERO_0, &shards, parts);
    ASSERT_NEAR(parts[MS_MEMORY_GRADS], 6300, 0);
}

/* ---- messages ---- */

static ms_split split_of(ms_schedule_kind kind, int ranks, int chunks)
{
    return (ms_split){.num_ranks = ranks,
                      .num_stages = ranks * (kind == MS_DUALPIPE ? 1 : chunks),
                      .num_chunks = chunks,
                      .shape = {.kind = kind,
                                .num_ranks = ranks,
                                .virtual_stages = kind == MS_DUALPIPE ? 1 : chunks}};
}

/* In a loop of more than two ranks the first follows the last; in a V it does not. */
static void ends_of_a_loop_are_neighbours(void **state)
{
    (void)state;
    const struct {
        ms_schedule_kind kind;
        int ranks, chunks, first, middle, last;
    } rows[] = {{MS_1F1B, 4, 1, 1, 2, 1},        {MS_1F1B, 2, 1, 1, 1, 1},
                {MS_INTERLEAVED, 4, 2, 2, 2, 2}, {MS_INTERLEAVED, 2, 3, 1, 1, 1},
                {MS_ZB_V, 4, 2, 1, 2, 1},        {MS_DUALPIPE, 4, 2, 1, 2, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_split split = split_of(rows[i].kind, rows[i].ranks, rows[i].chunks);
        ASSERT_INT(ms_split_sides(&split, 0).neighbours, rows[i].first);
        ASSERT_INT(ms_split_sides(&split, rows[i].ranks / 2).neighbours, rows[i].middle);
        ASSERT_INT(ms_split_sides(&split, rows[i].ranks - 1).neighbours, rows[i].last);
    }
}

/* Per neighbour two messages of 10 bytes; or, apart, one per micro-batch and side of each
 * chunk: 5 micro-batches; the first rank of a loop of 2 x 4 stages has 3 sides. */
static void receive_buffers_are_per_neighbour_or_microbatch(void **state)
{
    (void)state;
    ms_stack habits = stack;
    ms_split split = split_of(MS_INTERLEAVED, 4, 2);
    ms_rank_sides first = ms_split_sides(&split, 0), second = ms_split_sides(&split, 1);
    ASSERT_NEAR(ms_message_buffer_bytes(&habits, &first, 10, 5), 2 * 2 * 10, 0);
    habits.receives_apart = true;
    ASSERT_NEAR(ms_message_buffer_bytes(&habits, &first, 10, 5), 3 * 5 * 10, 0);
    ASSERT_NEAR(ms_message_buffer_bytes(&habits, &second, 10, 5), 4 * 5 * 10, 0);
}

/* A last stage of a pipeline with 14 bytes a logit, 2 of which stay: of 3 micro-batches
 * with 140 bytes of logits each, 3 x 20 bytes. */
static void outputs_of_all_microbatches_may_stay(void **state)
{
    (void)state;
    ms_stack habits = stack;
    habits.logit_bytes.value = 14;
    habits.held_logit_bytes.value = 2;
    ms_stage stage = {.pipelined = true, .sum.memory.saved.logits_bytes = 140};
    int distinct = 0, multiplicity = 1;
    const ms_rank_class run = {
        .num_distinct = 1, .distinct = &distinct, .multiplicity = &multiplicity};
    ASSERT_NEAR(ms_held_output_bytes(&habits, &stage, &run, 3), 60, 1e-12);
    stage.pipelined = false;
    ASSERT_NEAR(ms_held_output_bytes(&habits, &stage, &run, 3), 0, 0);
}

/* ---- communicators ---- */

static void pipelines_may_open_more_communicators(void **state)
{
    (void)state;
    ms_stack habits = stack;
    habits.more_communicators.value = 2;
    ms_workload *workload = make_workload(&habits);
    ms_shard_sizes sizes = shards;
    ASSERT_NEAR(ms_rank_driver_bytes(workload, &sizes), 900 + 3 * 50, 0);
    sizes.pipeline = true;
    ASSERT_NEAR(ms_rank_driver_bytes(workload, &sizes), 900 + 5 * 50, 0);
}

static ms_links one_rank(void)
{
    ms_links links = {0};
    for (int i = 0; i < MS_NUM_BILL_AXES; i++)
        links.span[i].size = 1;
    for (int i = 0; i < MS_NUM_SYNC_GROUPS; i++)
        links.sync_span[i].size = 1;
    links.pipeline_span.size = links.world_span.size = 1;
    return links;
}

/* A rank has a communicator for the world, unless it is alone, and one for each group
 * of more than one rank. */
static void a_dense_plan_opens_a_communicator_per_group(void **state)
{
    (void)state;
    ms_links links = one_rank();
    ASSERT_INT(ms_shard_sizes_of(&links, 1).num_communicators, 0);
    links.world_span.size = 128;
    links.span[MS_BILL_TP].size = 2;
    ASSERT_INT(ms_shard_sizes_of(&links, 1).num_communicators, 2);
    links.span[MS_BILL_CP].size = 2;
    links.sync_span[MS_SYNC_FSDP].size = 8;
    ASSERT_INT(ms_shard_sizes_of(&links, 1).num_communicators, 4);
    links.sync_span[MS_SYNC_REPLICATE].size = 2;
    assert_false(ms_shard_sizes_of(&links, 1).data_parallel);
    assert_false(ms_shard_sizes_of(&links, 1).pipeline);
    links.pipeline_span.size = 4;
    links.sync_span[MS_SYNC_ALL].size = 16;
    assert_true(ms_shard_sizes_of(&links, 1).data_parallel);
    assert_true(ms_shard_sizes_of(&links, 1).pipeline);
    ASSERT_INT(ms_shard_sizes_of(&links, 1).num_communicators, 6);
    links.sync_span[MS_SYNC_EXPERT_FSDP].size = 16;
    ms_shard_sizes sizes = ms_shard_sizes_of(&links, 1);
    ASSERT_NEAR(sizes.dense, 8, 0);
    ASSERT_NEAR(sizes.expert, 16, 0);
}

/* ---- optimizer ---- */

typedef struct optimized {
    double seconds;
    int rank;
} optimized;

/* Time of the optimizer in a pipeline of 4 ranks, and the rank that needs longest for it.
 * Ranks 0 and 1 hold 1000 dense parameters each, ranks 2 and 3 hold 200 dense and 600
 * expert parameters each. The gradient norm takes 3 s. */
static optimized optimize(ms_sharding sharding)
{
    static const ms_rank_load loads[] = {{.dense_params = 1000},
                                         {.dense_params = 200, .expert_params = 600}};
    static const ms_rank_class runs[] = {{.first_rank = 0, .num_ranks = 2},
                                         {.first_rank = 2, .num_ranks = 2}};
    const ms_split split = {.num_ranks = 4, .num_runs = 2, .runs = runs};
    const ms_pipeline pipeline = {.workload = make_workload(&stack),
                                  .split = &split,
                                  .loads = loads,
                                  .shards = shards,
                                  .world_sync_s = 3};
    optimized result = {.rank = -1};
    result.seconds = ms_optimizer_s(&pipeline, sharding, &result.rank);
    return result;
}

/* The optimizer takes as long as the rank that updates the most parameters, of 20 bytes
 * each at 100 B/s. Unsharded this is a rank with 1000 dense parameters. Sharded, dense
 * parameters 4 ways and expert parameters 2 ways, it is a rank with 50 + 300, more than
 * 250. */
static void the_optimizer_takes_what_the_fullest_rank_owns(void **state)
{
    (void)state;
    optimized whole = optimize(MS_ZERO_0);
    ASSERT_NEAR(whole.seconds, 3 + 200, 1e-12);
    ASSERT_INT(whole.rank, 0);
    for (int sharding = MS_ZERO_1; sharding < MS_NUM_SHARDINGS; sharding++) {
        optimized part = optimize((ms_sharding)sharding);
        ASSERT_NEAR(part.seconds, 3 + 70, 1e-12);
        ASSERT_INT(part.rank, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_whole_or_a_shard),
        cmocka_unit_test(units_are_gathered_as_the_sharding_asks),
        cmocka_unit_test(parameters_on_one_rank_are_not_gathered),
        cmocka_unit_test(what_a_framework_does_not_count_is_outside),
        cmocka_unit_test(fragmentation_is_a_share_of_what_is_allocated),
        cmocka_unit_test(a_loss_may_need_its_blocks_once_more),
        cmocka_unit_test(buckets_and_late_gradients_come_with_their_ranks),
        cmocka_unit_test(workspaces_are_those_of_the_device),
        cmocka_unit_test(kinds_add_what_their_figures_count),
        cmocka_unit_test(casts_of_parameters_stay),
        cmocka_unit_test(freed_gradients_take_the_place_of_activations),
        cmocka_unit_test(ends_of_a_loop_are_neighbours),
        cmocka_unit_test(receive_buffers_are_per_neighbour_or_microbatch),
        cmocka_unit_test(outputs_of_all_microbatches_may_stay),
        cmocka_unit_test(pipelines_may_open_more_communicators),
        cmocka_unit_test(a_dense_plan_opens_a_communicator_per_group),
        cmocka_unit_test(the_optimizer_takes_what_the_fullest_rank_owns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
