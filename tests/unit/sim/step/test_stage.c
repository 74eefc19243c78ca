/* Costs of stages from costs of blocks, and durations of pipeline actions, with round
 * coefficients by hand; and splits of layers by count and by FLOP. */
#include "tests/unit/stage_bench.h"

#include "sim/step/split.h"

/* ---- pricing parts ---- */

static ms_block_costs price(const bench *b, const ms_bill *bill, const ms_links *links)
{
    ms_bill_set bills = {.embed = *bill, .head = *bill};
    for (int kind = 0; kind < 2; kind++)
        bills.layer[kind][MS_RECOMPUTE_NONE] = bill;
    ms_block_costs parts;
    memset(&parts, 0, sizeof parts);
    const ms_plan plan = ms_plan_default(1);
    ms_block_costs_price(b->workload, &bills, links, &plan, 1U << MS_RECOMPUTE_NONE,
                         &parts);
    return parts;
}

/* Block costs can be made from the priced programs (ms_bill) of only the recomputation
 * modes that are asked for. The first of these gives the size of a layer. */
static void parts_are_priced_from_the_modes_that_are_there(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_links links = make_links();
    ms_bill bill = {.compute_s = {3, 5}};
    const ms_plan plan = ms_plan_default(1);
    ms_block_costs want = price(b, &bill, &links), got = {0};
    for (int mode = 1; mode < MS_NUM_RECOMPUTE; mode++) {
        ms_bill_set bills = {.embed = bill, .head = bill};
        for (int kind = 0; kind < 2; kind++)
            bills.layer[kind][mode] = &bill;
        ms_block_costs_price(b->workload, &bills, &links, &plan, 1U << mode, &got);
        ASSERT_NEAR(got.embed.forward_s, want.embed.forward_s, 0);
        ASSERT_NEAR(got.layer[0][mode].backward_s,
                    want.layer[0][MS_RECOMPUTE_NONE].backward_s, 0);
    }
}

/* Links on which each kind of group has a rate of its own, and every collective takes 1 s
 * of latency in addition. */
static ms_links sync_links(void)
{
    ms_links links = {0};
    links.gather[MS_SYNC_FSDP] = line(1, 1);
    links.gather[MS_SYNC_EXPERT_FSDP] = line(1, 2);
    links.reduce[MS_SYNC_FSDP] = line(1, 3);
    links.reduce[MS_SYNC_EXPERT_FSDP] = line(1, 4);
    links.all_reduce[MS_SYNC_ALL] = line(1, 5);
    links.all_reduce[MS_SYNC_EXPERT_ALL] = line(1, 6);
    links.all_reduce[MS_SYNC_REPLICATE] = line(1, 7);
    links.law[MS_BILL_TP][MS_ALL_REDUCE] = line(1, 8);
    links.sync_span[MS_SYNC_FSDP].size = 4;
    links.sync_span[MS_SYNC_EXPERT_FSDP].size = 2;
    return links;
}

/* A block of 80 dense and 24 expert parameters: their gathers carry 160 and 48 bytes,
 * their reductions 320 and 96. A rank's shard has 80 / 4 + 24 / 2 parameters. */
static void parameters_and_gradients_travel_over_their_groups(void **state)
{
    (void)state;
    bench *b = open_bench();
    b->stack.param_comm_bytes.value = 2;
    b->stack.grad_comm_bytes.value = 4;
    ms_links links = sync_links();
    ms_bill bill = {.dense_params = 80, .expert_params = 24, .tp_partial_params = 10};
    ms_block_cost layer = price(b, &bill, &links).layer[1][MS_RECOMPUTE_NONE];
    ASSERT_NEAR(layer.gather_s, (1 + 160) + (1 + 2 * 48), 1e-12);
    ASSERT_NEAR(layer.reduce_s, (1 + 3 * 320) + (1 + 4 * 96), 1e-12);
    ASSERT_NEAR(layer.all_reduce_s, (1 + 5 * 320) + (1 + 6 * 96), 1e-12);
    ASSERT_NEAR(layer.replicate_s, 1 + 7 * 4 * (20 + 12), 1e-12);
    ASSERT_NEAR(layer.tp_sync_s, 1 + 8 * 40, 1e-12);
    /* a collective without bytes takes no time */
    bill.expert_params = bill.tp_partial_params = 0;
    layer = price(b, &bill, &links).layer[0][MS_RECOMPUTE_NONE];
    ASSERT_NEAR(layer.gather_s, 161, 1e-12);
    ASSERT_NEAR(layer.reduce_s, 961, 1e-12);
    ASSERT_NEAR(layer.replicate_s, 1 + 7 * 80, 1e-12);
    ASSERT_NEAR(layer.tp_sync_s, 0, 0);
}

/* Reduced gradients are cleared and added, at 100 B/s: 80 gradients of 2 bytes are
 * cleared, 20 of them added to a shard of 20; of experts 24 are cleared, 12 added. */
static void reduced_gradients_are_cleared_and_added(void **state)
{
    (void)state;
    bench *b = open_bench();
    b->stack.grad_comm_bytes.value = 4;
    b->stack.grad_bytes.value = 2;
    ms_links links = sync_links();
    ms_bill bill = {.dense_params = 80, .expert_params = 24};
    double plain_s = price(b, &bill, &links).layer[1][MS_RECOMPUTE_NONE].reduce_s;
    b->stack.adds_reduced_gradients = true;
    ms_block_cost layer = price(b, &bill, &links).layer[1][MS_RECOMPUTE_NONE];
    ASSERT_NEAR(layer.reduce_s - plain_s, 0.02 * (80 + 3 * 20 + 24 + 3 * 12), 1e-9);
    links.sync_span[MS_SYNC_FSDP].size = links.sync_span[MS_SYNC_EXPERT_FSDP].size = 1;
    layer = price(b, &bill, &links).layer[1][MS_RECOMPUTE_NONE];
    ASSERT_NEAR(layer.reduce_s, plain_s, 1e-12);
}

/* A block takes 2 s of compute forward and 4 backward, two exposed collectives of 3 s
 * backward, and 50 bytes of accumulating gradients for each of 8 parameters at 100
 * B/s. */
static void a_pass_is_compute_and_exposed_traffic(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_links links = make_links();
    b->stack.accumulate_bytes.value = 50;
    ms_bill_comm exchange = two_of(MS_BILL_EP, MS_ALL_TO_ALL, 0);
    ms_bill bill = {.dense_params = 6,
                    .expert_params = 2,
                    .compute_s = {2, 4},
                    .num_comms = {0, 1},
                    .comms[MS_BILL_BACKWARD] = &exchange,
                    .output_bytes = 6};
    links.send = line(1, 2);
    ms_block_costs parts = price(b, &bill, &links);
    ASSERT_NEAR(parts.embed.forward_s, 2, 1e-12);
    ASSERT_NEAR(parts.embed.backward_compute_s, 4 + 4, 1e-12);
    ASSERT_NEAR(parts.embed.backward_s, 4 + 4 + 6, 1e-12);
    ASSERT_NEAR(parts.embed.forward_host_s + parts.embed.backward_host_s, 0, 0);
    ASSERT_NEAR(parts.send_bytes, 6, 0);
    ASSERT_NEAR(parts.send_s, 1 + 2 * 6, 1e-12);
}

/* The host takes half of a launch of 1 s for each of 6 and 9 kernels; where GPU and
 * host take equal times, the pass takes 2^(1/6) of one. */
static void host_takes_a_launch_per_kernel(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_links links = {0};
    b->profile.launch_s.value = 1;
    b->stack.launch_frac.value = 0.5;
    ms_bill bill = {.kernels = {6, 9}, .compute_s = {3, 0}};
    ms_block_cost head = price(b, &bill, &links).head;
    ASSERT_NEAR(head.forward_s, 3, 1e-12);
    ASSERT_NEAR(head.forward_host_s, 0, 1e-12);
    ASSERT_NEAR(head.backward_s, 4.5, 1e-12);
    ASSERT_NEAR(head.backward_host_s, 4.5, 1e-12);
}

static void host_time_of_a_layer_goes_to_the_forward_by_a_third(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_links links = {0};
    b->profile.launch_s.value = 1;
    b->stack.launch_frac.value = 1;
    /* a host time per layer is used instead of the time per launch */
    b->stack.host_s_per_layer.value = 9;
    ms_bill bill = {.kernels = {100, 100}, .compute_s = {0, 6}};
    ms_block_cost layer = price(b, &bill, &links).layer[0][MS_RECOMPUTE_NONE];
    ASSERT_NEAR(layer.forward_s, 3, 1e-12);
    ASSERT_NEAR(layer.backward_s, 6, 1e-12);
}

/* ---- stages ---- */

/* Costs of an embedding and of equal layers. A stage of the embedding and two layers
 * takes (s): forward 9, backward 17, gathers 7, reductions 10, sums over replicas 2.5,
 * all-reduces 17, sums over tp 0.5. */
static ms_block_costs make_parts(void)
{
    ms_block_costs parts = {.embed = {.forward_s = 1,
                                      .backward_s = 1,
                                      .gather_s = 3,
                                      .reduce_s = 4,
                                      .replicate_s = 0.5,
                                      .all_reduce_s = 7},
                            .head_params = 30};
    ms_block_cost layer = {.forward_s = 4,
                           .backward_s = 8,
                           .gather_s = 2,
                           .reduce_s = 3,
                           .replicate_s = 1,
                           .all_reduce_s = 5,
                           .tp_sync_s = 0.25};
    for (int kind = 0; kind < 2; kind++)
        parts.layer[kind][MS_RECOMPUTE_NONE] = layer;
    return parts;
}

static const ms_stage_layout first_two = {.num_layers = 2, .has_embedding = true};

/* Backward seconds of a stage, as a number whose digits count its layers: units those of
 * kind 0 and hundreds those of kind 1 without recomputation, tens those of kind 0 and
 * thousands those of kind 1 with recomputation. An embedding adds 0.5. */
static double backward_of(bool embedding, long first, long num, ms_recompute mode, long k)
{
    bench *b = open_bench();
    ms_block_costs parts = {.embed.backward_s = 0.5};
    parts.layer[0][MS_RECOMPUTE_NONE].backward_s = 1;
    parts.layer[0][MS_RECOMPUTE_FULL].backward_s = 10;
    parts.layer[1][MS_RECOMPUTE_NONE].backward_s = 100;
    parts.layer[1][MS_RECOMPUTE_FULL].backward_s = 1000;
    ms_stage_layout layout = {.first_layer = first,
                              .num_layers = num,
                              .has_embedding = embedding,
                              .mode = mode,
                              .recompute_layers = k};
    return stage_of(b, &parts, layout).sum.backward_s;
}

static void a_stage_sums_its_layers_by_kind_and_recomputation(void **state)
{
    (void)state;
    ASSERT_NEAR(backward_of(true, 0, 8, MS_RECOMPUTE_NONE, 0), 404.5, 1e-12);
    ASSERT_NEAR(backward_of(false, 3, 2, MS_RECOMPUTE_NONE, 3), 101, 1e-12);
    ASSERT_NEAR(backward_of(false, 2, 5, MS_RECOMPUTE_FULL, 0), 2030, 1e-12);
    ASSERT_NEAR(backward_of(false, 2, 5, MS_RECOMPUTE_FULL, 3), 1020 + 101, 1e-12);
    ASSERT_NEAR(backward_of(false, 3, 3, MS_RECOMPUTE_FULL, 1), 1000 + 101, 1e-12);
    ASSERT_NEAR(backward_of(false, 2, 5, MS_RECOMPUTE_FULL, 9), 2030, 1e-12);
}

static void a_stage_with_both_ends_holds_a_tied_matrix_once(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_block_costs parts = make_parts();
    parts.embed.dense_params = 30;
    parts.head.dense_params = 32;
    parts.head.reduce_s = 8;
    parts.head.memory.transient[MS_BILL_WHOLE].logits_bytes = 5;
    parts.tied_head = parts.head;
    parts.tied_head.dense_params = 2;
    parts.tied_head.reduce_s = 3;
    parts.layer[0][MS_RECOMPUTE_NONE].dense_params = 100;
    parts.layer[1][MS_RECOMPUTE_NONE].dense_params = 200;
    ms_stage_layout both = {.num_layers = 8, .has_embedding = true, .has_head = true};
    ms_stage apart = stage_of(b, &parts, both);
    b->model.tied_embeddings = true;
    ms_stage tied = stage_of(b, &parts, both);
    ASSERT_NEAR(apart.sum.dense_params, 30 + 1200 + 32, 0);
    ASSERT_NEAR(tied.sum.dense_params, 1200 + 32, 0);
    ASSERT_NEAR(apart.sum.reduce_s - tied.sum.reduce_s, 8 - 3, 1e-12);
    ASSERT_NEAR(tied.unit_dense_params, 200, 0);
    ASSERT_NEAR(tied.transient[MS_BILL_WHOLE].logits_bytes, 5, 0);
    ASSERT_NEAR(stage_of(b, &parts, first_two).sum.dense_params, 330, 0);
}

/* A head that is tied to the embedding, in frameworks whose gather buffers count the head
 * as a block of its own (fixed_unit_buffers). For the head, the shared matrix is gathered
 * (ZeRO-3) and its gradient reduced (ZeRO-2 and 3) again with every micro-batch.
 * Collectives that are made once a step do not change. */
static void a_tied_head_with_a_room_of_its_own_moves_the_matrix_again(void **state)
{
    (void)state;
    bench *b = open_bench();
    b->model.tied_embeddings = true;
    b->stack.dp_overlap.value = 0;
    ms_block_costs parts = make_parts();
    parts.head.gather_s = 7;
    parts.head.reduce_s = 8;
    parts.tied_head = parts.head;
    parts.tied_head.gather_s = 2;
    parts.tied_head.reduce_s = 3;
    ms_stage_layout both = {.num_layers = 8, .has_embedding = true, .has_head = true};
    ms_stage once = stage_of(b, &parts, both);
    ms_stage_times before[MS_NUM_SHARDINGS], after[MS_NUM_SHARDINGS];
    for (int how = 0; how < MS_NUM_SHARDINGS; how++)
        before[how] = ms_stage_durations(b->workload, &once, (ms_sharding)how, 0);
    b->stack.fixed_unit_buffers = true;
    ms_stage twice = stage_of(b, &parts, both);
    for (int how = 0; how < MS_NUM_SHARDINGS; how++)
        after[how] = ms_stage_durations(b->workload, &twice, (ms_sharding)how, 0);
    ASSERT_NEAR(twice.sum.gather_s, once.sum.gather_s, 0);
    for (int how = 0; how < MS_NUM_SHARDINGS; how++) {
        double forward_s = how == MS_ZERO_3 ? 5 : 0;
        double backward_s = how == MS_ZERO_3 ? 10 : how == MS_ZERO_2 ? 5 : 0;
        ASSERT_NEAR(after[how].forward_s - before[how].forward_s, forward_s, 1e-12);
        ASSERT_NEAR(after[how].backward_s - before[how].backward_s, backward_s, 1e-12);
    }
}

/* ---- durations ---- */

/* Durations of a stage that has no other stage before or after it: its head takes no time.
 * With ZeRO-3, where a head would be gathered before the layers, it has none. */
static ms_stage_times times_of(const bench *b, const ms_block_costs *parts,
                               ms_sharding how)
{
    ms_block_costs without_head = *parts;
    without_head.head = without_head.tied_head = (ms_block_cost){0};
    ms_stage_layout layout = first_two;
    layout.has_head = how != MS_ZERO_3;
    ms_stage stage = stage_of(b, &without_head, layout);
    assert_true(stage.pipelined == (how == MS_ZERO_3));
    return ms_stage_durations(b->workload, &stage, how, 0.125);
}

static void expect_times(ms_stage_times t, ms_stage_times want)
{
    ASSERT_NEAR(t.forward_s, want.forward_s, 1e-12);
    ASSERT_NEAR(t.first_forward_s, want.first_forward_s, 1e-12);
    ASSERT_NEAR(t.backward_s, want.backward_s, 1e-12);
    ASSERT_NEAR(t.last_backward_s, want.last_backward_s, 1e-12);
    ASSERT_NEAR(t.send_forward_s, 0.125, 0);
    ASSERT_NEAR(t.send_backward_s, 0.125, 0);
    ASSERT_NEAR(t.release_s, want.release_s, 1e-12);
    ASSERT_NEAR(t.reduce_s, want.reduce_s, 1e-12);
    ASSERT_NEAR(t.reduce_tail_s, want.reduce_tail_s, 1e-12);
    ASSERT_NEAR(t.after_rank_s, want.after_rank_s, 1e-12);
}

/* No sharding: all-reduces of 5, 5 (layers) and 7 s (embedding) slow the last backward of
 * 17 s by a quarter of their time, 4.25 s. The second layer's all-reduce of 5 s and the
 * embedding's of 7 s begin when only the embedding's backward of 1.25 s is left. */
static void without_sharding_gradients_are_reduced_beside_the_last_backward(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_block_costs parts = make_parts();
    expect_times(times_of(b, &parts, MS_ZERO_0),
                 (ms_stage_times){.forward_s = 9,
                                  .first_forward_s = 9,
                                  .backward_s = 17,
                                  .last_backward_s = 17 + 0.25 * 17,
                                  .reduce_s = 17,
                                  .reduce_tail_s = 12 - 1.25,
                                  .after_rank_s = 0.5});
}

/* ZeRO-1: the gathers of a step, 7 s, slow its first forward of 9 s by a quarter of 7 s;
 * the first layer waits for its gather and the embedding's, 5 s, and the embedding's
 * forward of 10.75 / 9 s runs meanwhile. ZeRO-3 that keeps gathered
 * parameters takes the same times. ZeRO-2: every backward reduces the gradients of three
 * blocks, from 8, 16.75 and 19.75 s after its start on, and ends at 23.75 s. */
static void gathers_of_a_step_slow_the_first_forward(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_block_costs parts = make_parts();
    ms_stage_times want = {.forward_s = 9,
                           .first_forward_s = 9 + 0.25 * 7,
                           .backward_s = 17,
                           .last_backward_s = 17 + 0.25 * 12.5,
                           .release_s = 5 - 10.75 / 9,
                           .reduce_s = 10 + 2.5,
                           .reduce_tail_s = 8.5 - 20.125 / 17,
                           .after_rank_s = 0.5};
    expect_times(times_of(b, &parts, MS_ZERO_1), want);
    expect_times(times_of(b, &parts, MS_ZERO_3_NO_RESHARD), want);
    want.backward_s = 23.75;
    expect_times(times_of(b, &parts, MS_ZERO_2), want);
}

/* Stages of a pipeline. Gathers do not lengthen a stage's first forward. The first stage
 * reduces gradients beside its last backward; any other stage reduces all of them after
 * its last backward. With ZeRO-2, the last backward of a stage waits for the stage's own
 * reductions, and sums over replicas come after the rank's last backward. */
static void stages_of_a_pipeline_do_not_wait_for_each_others_traffic(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_block_costs parts = make_parts();
    ms_stage first = stage_of(b, &parts, first_two),
             next = stage_of(b, &parts, (ms_stage_layout){.num_layers = 2});
    ms_stage_times want = {.forward_s = 9,
                           .first_forward_s = 9,
                           .backward_s = 17,
                           .last_backward_s = 17 + 0.25 * 12.5,
                           .release_s = 4,
                           .reduce_s = 12.5,
                           .reduce_tail_s = 8.5 - 20.125 / 17,
                           .after_rank_s = 0.5};
    expect_times(ms_stage_durations(b->workload, &first, MS_ZERO_1, 0.125), want);
    want = (ms_stage_times){.forward_s = 8,
                            .first_forward_s = 8,
                            .backward_s = 16,
                            .last_backward_s = 16,
                            .release_s = 2,
                            .reduce_s = 8,
                            .reduce_tail_s = 8,
                            .after_rank_s = 0.5};
    expect_times(ms_stage_durations(b->workload, &next, MS_ZERO_1, 0.125), want);
    ms_stage_times t = ms_stage_durations(b->workload, &next, MS_ZERO_2, 0.125);
    ASSERT_NEAR(t.last_backward_s, t.backward_s, 1e-12);
    ASSERT_NEAR(t.reduce_tail_s, 2, 1e-12);
    ASSERT_NEAR(t.after_rank_s, 0.5, 1e-12);
    assert_true(t.reduces_last);
}

/* ZeRO-2. The first forward takes 9 / 0.75 s beside gathers of 3 + 2 x 10 s; the last
 * layer can only run after these, and ends at 23 + 4 / 0.75 s. In every backward, reductions of 13 +
 * 13 + 4 s begin after 8 s. At the end of the step the reductions are 14 + 14 + 4.5 s and
 * begin after the first 8 / 0.75 s of the backward's 17 / 0.75 s. */
static void long_gathers_delay_the_first_forward(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_block_costs parts = make_parts();
    for (int kind = 0; kind < 2; kind++) {
        parts.layer[kind][MS_RECOMPUTE_NONE].gather_s = 10;
        parts.layer[kind][MS_RECOMPUTE_NONE].reduce_s = 13;
    }
    ms_stage_times t = times_of(b, &parts, MS_ZERO_2);
    ASSERT_NEAR(t.first_forward_s, 12, 1e-12);
    ASSERT_NEAR(t.release_s, 23 + 4 / 0.75 - 12, 1e-12);
    ASSERT_NEAR(t.backward_s, 8 + 30, 1e-12);
    ASSERT_NEAR(t.last_backward_s, 17 / 0.75, 1e-12);
    ASSERT_NEAR(t.reduce_s, 32.5, 1e-12);
    ASSERT_NEAR(t.reduce_tail_s, 32.5 - 9 / 0.75, 1e-12);
}

/* ZeRO-3 gathers and reduces block by block: each block computes beside the gather of
 * the next and the reduction of the one before. The embedding's gather of 3 s precedes
 * a forward, its reduction of 4 s follows a backward. The last backward also runs
 * beside sums over replicas, and ends with the embedding, which waits for no layer's
 * reduction. */
static void resharding_gathers_and_reduces_part_by_part(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_block_costs parts = make_parts();
    double forward = 3 + 2 + 4.5 + 4.5;
    double backward = 8.5 + 9.5 + 3 + 4;
    double embedding = 1 / 0.75;
    expect_times(times_of(b, &parts, MS_ZERO_3),
                 (ms_stage_times){.forward_s = forward,
                                  .first_forward_s = forward,
                                  .backward_s = backward,
                                  .last_backward_s = 8.5 + 9.75 + embedding,
                                  .reduce_s = 12.5,
                                  .reduce_tail_s = 4 - embedding + 4.5,
                                  .after_rank_s = 0.5});
}

/* All gathers and reductions are exposed when nothing overlaps; no gradient is partial
 * over tp here. */
static void without_overlap_traffic_adds_to_compute(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_block_costs parts = make_parts();
    for (int kind = 0; kind < 2; kind++)
        parts.layer[kind][MS_RECOMPUTE_NONE].tp_sync_s = 0;
    b->stack.dp_overlap.value = 0;
    ms_stage_times want = {.forward_s = 9,
                           .first_forward_s = 9,
                           .backward_s = 17,
                           .last_backward_s = 17,
                           .reduce_s = 17,
                           .reduce_tail_s = 17};
    expect_times(times_of(b, &parts, MS_ZERO_0), want);
    want.release_s = 7;
    want.reduce_s = want.reduce_tail_s = 12.5;
    expect_times(times_of(b, &parts, MS_ZERO_1), want);
    expect_times(times_of(b, &parts, MS_ZERO_3_NO_RESHARD), want);
    want.backward_s = want.last_backward_s = 17 + 10;
    want.reduce_s = want.reduce_tail_s = 2.5;
    expect_times(times_of(b, &parts, MS_ZERO_2), want);
    ms_stage_times t = times_of(b, &parts, MS_ZERO_3);
    ASSERT_NEAR(t.backward_s, 17 + 7 + 10, 1e-12);
    ASSERT_NEAR(t.last_backward_s, 17 + 7 + 10, 1e-12);
    ASSERT_NEAR(t.reduce_tail_s, 2.5, 1e-12);
}

/* Collectives of sharded gradients come after the last backward with exposes_shards;
 * unsharded gradients are still all-reduced beside it. */
static void traffic_of_shards_may_be_exposed_alone(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_block_costs parts = make_parts();
    ms_stage_times hidden = times_of(b, &parts, MS_ZERO_0);
    b->stack.exposes_shards = true;
    expect_times(times_of(b, &parts, MS_ZERO_0), hidden);
    ms_stage_times exposed[MS_NUM_SHARDINGS];
    for (int how = 1; how < MS_NUM_SHARDINGS; how++)
        exposed[how] = times_of(b, &parts, (ms_sharding)how);
    b->stack.dp_overlap.value = 0;
    for (int how = 1; how < MS_NUM_SHARDINGS; how++)
        expect_times(times_of(b, &parts, (ms_sharding)how), exposed[how]);
    assert_true(times_of(b, &parts, MS_ZERO_0).reduce_tail_s > hidden.reduce_tail_s);
}

static void expect_split(bench *b, ms_layer_split how, int num_stages, const long *want)
{
    long layers[8];
    b->stack.layer_split = how;
    ms_default_split(b->workload, NULL, num_stages, false, layers);
    for (int s = 0; s < num_stages; s++)
        ASSERT_INT(layers[s], want[s]);
}

static void an_even_split_gives_every_stage_the_same(void **state)
{
    (void)state;
    bench *b = open_bench();
    expect_split(b, MS_SPLIT_EVEN, 4, (const long[]){2, 2, 2, 2});
    expect_split(b, MS_SPLIT_EVEN, 8, (const long[]){1, 1, 1, 1, 1, 1, 1, 1});
    /* 5 divides 8 layers + 2: embedding and head count as a layer each */
    expect_split(b, MS_SPLIT_EVEN, 5, (const long[]){1, 2, 2, 2, 1});
}

/* A split of layers by FLOP. A layer counts 4 x 100 + 3 x 10 x 10 + 30 x 10 = 1000, the
 * head 400 x 10 = 4000, 8 layers and the head 12000. A stage ends with the layer at which
 * the count reaches the stage's share of the 12000. */
static void a_split_by_flop_ends_where_a_share_is_reached(void **state)
{
    (void)state;
    bench *b = open_bench();
    b->model.hidden = 10;
    b->model.ffn_hidden = 10;
    b->model.vocab = 400;
    b->workload->sequence_length = 30;
    expect_split(b, MS_SPLIT_BY_FLOP, 1, (const long[]){8});
    expect_split(b, MS_SPLIT_BY_FLOP, 2, (const long[]){6, 2});
    expect_split(b, MS_SPLIT_BY_FLOP, 3, (const long[]){4, 4, 0});
    /* The last 2 layers do not reach the third share, so they stay with the head; the
     * empty stage comes before them. */
    expect_split(b, MS_SPLIT_BY_FLOP, 4, (const long[]){3, 3, 0, 2});
    expect_split(b, MS_SPLIT_BY_FLOP, 8, (const long[]){2, 1, 2, 1, 2, 0, 0, 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_and_gradients_travel_over_their_groups),
        cmocka_unit_test(reduced_gradients_are_cleared_and_added),
        cmocka_unit_test(a_pass_is_compute_and_exposed_traffic),
        cmocka_unit_test(host_takes_a_launch_per_kernel),
        cmocka_unit_test(host_time_of_a_layer_goes_to_the_forward_by_a_third),
        cmocka_unit_test(a_stage_sums_its_layers_by_kind_and_recomputation),
        cmocka_unit_test(a_stage_with_both_ends_holds_a_tied_matrix_once),
        cmocka_unit_test(a_tied_head_with_a_room_of_its_own_moves_the_matrix_again),
        cmocka_unit_test(without_sharding_gradients_are_reduced_beside_the_last_backward),
        cmocka_unit_test(gathers_of_a_step_slow_the_first_forward),
        cmocka_unit_test(long_gathers_delay_the_first_forward),
        cmocka_unit_test(stages_of_a_pipeline_do_not_wait_for_each_others_traffic),
        cmocka_unit_test(resharding_gathers_and_reduces_part_by_part),
        cmocka_unit_test(without_overlap_traffic_adds_to_compute),
        cmocka_unit_test(traffic_of_shards_may_be_exposed_alone),
        cmocka_unit_test(an_even_split_gives_every_stage_the_same),
        cmocka_unit_test(a_split_by_flop_ends_where_a_share_is_reached),
        cmocka_unit_test(parts_are_priced_from_the_modes_that_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
