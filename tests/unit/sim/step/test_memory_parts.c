/* Memory of ranks made by hand, for every sharding: parameters, gradients, optimizer
 * states, gathered parameters and communicators; and the time of the optimizer. */
#include "sim/step/step.h"

#include "tests/test.h"

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

/* The context (900 bytes) and 3 communicators (50 each) are inside or outside of the
 * peak that the framework reports. */
static void what_a_framework_does_not_count_is_outside(void **state)
{
    (void)state;
    for (int counts = 0; counts < 2; counts++) {
        ms_stack habits = stack;
        habits.counts_context = counts == 1;
        ms_workload *workload = make_workload(&habits);
        double parts[MS_NUM_MEMORY_CATEGORIES];
        ms_rank_memory(workload, &load, MS_ZERO_0, &shards, parts);
        double outside_bytes = ms_rank_outside_bytes(workload, &shards);
        ASSERT_NEAR(outside_bytes, counts == 1 ? 0 : 900 + 3 * 50, 0);
        double inside_bytes = parts[MS_MEMORY_CONTEXT] + parts[MS_MEMORY_COMM_BUFFERS];
        ASSERT_NEAR(inside_bytes + outside_bytes, 300 + 900 + 3 * 50, 0);
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

/* ---- communicators ---- */

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
        cmocka_unit_test(a_dense_plan_opens_a_communicator_per_group),
        cmocka_unit_test(the_optimizer_takes_what_the_fullest_rank_owns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
