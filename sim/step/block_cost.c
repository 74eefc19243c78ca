/* Prices each block of the model (embedding, layer, head) on a plan's network links. */
#include "sim/step/block_cost.h"

#include "base/number.h"
#include "sim/step/host_time.h"
#include "sim/step/message.h"
#include "sim/step/offload.h"
#include "sim/step/overlap.h"
#include "sim/step/sync_units.h"

#include <assert.h>

ms_sharding ms_plan_sharding(const ms_plan *plan)
{
    if (plan->zero == 3 && !plan->reshard_after_forward)
        return MS_ZERO_3_NO_RESHARD;
    return (ms_sharding)plan->zero;
}

bool ms_shards_grads(ms_sharding sharding)
{
    return sharding == MS_ZERO_2 || sharding == MS_ZERO_3;
}

bool ms_overlaps_sync(const ms_stack *stack, ms_sharding sharding)
{
    return stack->dp_overlap.value > 0.0 &&
           (sharding == MS_ZERO_0 || !stack->exposes_shards);
}

/* ---- exposed communication ---- */

bool ms_comm_is_async(const ms_bill_comm *comm, const ms_links *links, bool async_tp)
{
    bool chunked =
        comm->collective == MS_ALL_GATHER || comm->collective == MS_REDUCE_SCATTER;
    return comm->axis == MS_BILL_TP && async_tp && chunked &&
           links->span[comm->axis].tier == 0;
}

/* Three kinds of communication slow the compute beside them by the stack's interference
 * fraction: asynchronous TP, except for its first chunk (Wang et al. 2023, "Overlap
 * communication with dependent computation"); collectives beside a linear layer's
 * gradient GEMMs; sends of ring attention beside the attention of their ring step. */
double ms_comm_exposed_s(const ms_workload *workload, const ms_bill_comm *comm,
                         const ms_links *links, bool async_tp)
{
    const ms_stack *stack = workload->stack;
    double gained_frac = 1.0 - stack->interference_frac.value, overlap_frac = 0.0;
    double seconds =
        comm->count *
        ms_collective_s(&links->law[comm->axis][comm->collective], comm->size_bytes);
    if (ms_comm_is_async(comm, links, async_tp)) {
        double ranks = (double)links->span[comm->axis].size;
        return seconds -
               ms_min(seconds * (ranks - 1.0) / ranks, comm->window_s) * gained_frac;
    }
    if (comm->beside_s > 0.0)
        return seconds - ms_min(seconds, comm->beside_s) * gained_frac;
    if (comm->axis == MS_BILL_TP) {
        overlap_frac = stack->tp_overlap_frac.value;
    } else if (comm->ring) {
        return seconds -
               ms_min(seconds * stack->ring_overlap_frac.value, comm->window_s) *
                   gained_frac;
    } else if (comm->axis == MS_BILL_CP) {
        overlap_frac = stack->cp_overlap_frac.value;
    }
    return seconds - ms_min(seconds * overlap_frac, comm->window_s);
}

static double pass_exposed_s(const ms_workload *workload, const ms_bill *bill, int pass,
                             const ms_links *links, bool async_tp)
{
    double seconds = 0.0;
    for (int i = 0; i < bill->num_comms[pass]; i++)
        seconds += ms_comm_exposed_s(workload, &bill->comms[pass][i], links, async_tp);
    return seconds;
}

/* A block and its place in transfers of parameters and gradients. */
typedef struct moved_block {
    const ms_workload *workload;
    const ms_links *links;
    const ms_bill *bill;
    double unit_layers;
} moved_block;

/* Seconds of the collectives that move so many bytes of dense [0] and expert [1] states. */
static double sync_s(const moved_block *b,
                     const ms_collective_law laws[MS_NUM_SYNC_GROUPS],
                     const ms_sync_group groups[2], const double bytes[2])
{
    double seconds = 0.0;
    for (int i = 0; i < 2; i++)
        seconds += ms_sync_s(&laws[groups[i]],
                             ms_sync_split_of(b->workload->stack, b->bill, i == 1,
                                              b->unit_layers, bytes[i]));
    return seconds;
}

double ms_moved_dense_params(const ms_workload *workload, ms_sharding sharding,
                             const ms_bill *bill, double dense_params, bool reduces)
{
    bool by_unit = reduces ? ms_shards_grads(sharding) : sharding == MS_ZERO_3;
    return by_unit && workload->stack->fixed_unit_buffers ? bill->dense_params
                                                          : dense_params;
}

double ms_quantize_gather_s(const ms_workload *workload, const ms_links *links,
                            ms_sync_group group, double num_params)
{
    const ms_stack *stack = workload->stack;
    double num_shards = (double)links->sync_span[group].size;
    if (!stack->quantizes_gathers || num_shards <= 1.0)
        return 0.0;
    double both_bytes =
        stack->param_comm_bytes.value + ms_stored_bytes(workload->compute);
    return ms_stream_s(&workload->pricer,
                       both_bytes * num_params * (1.0 + 1.0 / num_shards));
}

double ms_accumulate_gradients_s(const ms_workload *workload, const ms_links *links,
                                 ms_sync_group group, double num_params)
{
    const ms_stack *stack = workload->stack;
    double num_shards = (double)links->sync_span[group].size;
    if (num_shards <= 1.0)
        return 0.0;
    double seconds = ms_host_gradients_s(workload, links, num_params / num_shards);
    double traffic_bytes = 0.0;
    if (stack->adds_reduced_gradients)
        traffic_bytes += stack->grad_bytes.value * (1.0 + 3.0 / num_shards);
    if (stack->quantizes_reductions)
        traffic_bytes += 2.0 * stack->grad_comm_bytes.value +
                         ms_stored_bytes(workload->compute) * (1.0 + 1.0 / num_shards);
    return seconds + ms_stream_s(&workload->pricer, traffic_bytes * num_params);
}

static const ms_sync_group shard_groups[2] = {MS_SYNC_FSDP, MS_SYNC_EXPERT_FSDP};

static double quantize_s(const moved_block *b, const ms_sync_group groups[2])
{
    return ms_quantize_gather_s(b->workload, b->links, groups[0], b->bill->dense_params) +
           ms_quantize_gather_s(b->workload, b->links, groups[1], b->bill->expert_params);
}

static void price_gathers(const moved_block *b, ms_block_cost *block)
{
    static const ms_sync_group secondary[2] = {MS_SYNC_SECONDARY,
                                               MS_SYNC_EXPERT_SECONDARY};
    const ms_bill *bill = b->bill;
    double bytes = b->workload->stack->param_comm_bytes.value;
    const double trained[2] = {bytes * bill->dense_params, bytes * bill->expert_params};
    const double all[2] = {trained[0] + bill->frozen.dense,
                           trained[1] + bill->frozen.expert};
    const ms_collective_law *laws = b->links->gather;
    block->gather_s = sync_s(b, laws, shard_groups, trained);
    block->frozen_gather_s = 0.0;
    if (bill->frozen.dense + bill->frozen.expert > 0.0)
        block->frozen_gather_s = sync_s(b, laws, shard_groups, all) - block->gather_s;
    block->gather_s += quantize_s(b, shard_groups);
    if (b->links->has_secondary)
        block->regather_saved_s = block->gather_s + block->frozen_gather_s -
                                  sync_s(b, laws, secondary, all) -
                                  quantize_s(b, secondary);
}

static void price_sync(const moved_block *b, ms_block_cost *block)
{
    static const ms_sync_group all_groups[2] = {MS_SYNC_ALL, MS_SYNC_EXPERT_ALL};
    const ms_links *links = b->links;
    const ms_bill *bill = b->bill;
    double grad_bytes = b->workload->stack->grad_comm_bytes.value;
    const double bytes[2] = {grad_bytes * bill->dense_params,
                             grad_bytes * bill->expert_params};
    block->unit_layers = b->unit_layers;
    price_gathers(b, block);
    block->reduce_s = sync_s(b, links->reduce, shard_groups, bytes);
    block->reduce_s +=
        ms_accumulate_gradients_s(b->workload, links, MS_SYNC_FSDP, bill->dense_params) +
        ms_accumulate_gradients_s(b->workload, links, MS_SYNC_EXPERT_FSDP,
                                  bill->expert_params);
    block->all_reduce_s = sync_s(b, links->all_reduce, all_groups, bytes);
    double shard_bytes =
        grad_bytes *
        (bill->dense_params / (double)links->sync_span[MS_SYNC_FSDP].size +
         bill->expert_params / (double)links->sync_span[MS_SYNC_EXPERT_FSDP].size);
    block->replicate_s = ms_sync_s(
        &links->all_reduce[MS_SYNC_REPLICATE],
        ms_sync_split_of(b->workload->stack, bill, false, b->unit_layers, shard_bytes));
    block->tp_sync_s = ms_collective_s(&links->law[MS_BILL_TP][MS_ALL_REDUCE],
                                       grad_bytes * bill->tp_partial_params);
}

/* ---- links that are shared with gathers and reductions ---- */

/* Gathers of a block's parameters (unsharded: all-reduces of its gradients), dense [0]
 * and expert [1] ones: link use and seconds of their transfers without latency, and the
 * seconds of both with it. */
typedef struct sync_share {
    ms_link_share share[2];
    double wire_s[2], all_s;
} sync_share;

static sync_share share_of_sync(const ms_workload *workload, const ms_bill *bill,
                                const ms_links *links)
{
    bool sharded = links->sync_span[MS_SYNC_FSDP].size > 1 ||
                   links->sync_span[MS_SYNC_EXPERT_FSDP].size > 1;
    const ms_sync_group groups[] = {sharded ? MS_SYNC_FSDP : MS_SYNC_ALL,
                                    sharded ? MS_SYNC_EXPERT_FSDP : MS_SYNC_EXPERT_ALL};
    const double params[] = {bill->dense_params, bill->expert_params};
    const ms_collective_law *laws = sharded ? links->gather : links->all_reduce;
    ms_collective collective = sharded ? MS_ALL_GATHER : MS_ALL_REDUCE;
    double bytes = sharded ? workload->stack->param_comm_bytes.value
                           : workload->stack->grad_comm_bytes.value;
    sync_share sync = {0};
    for (int i = 0; i < 2; i++) {
        double size_bytes = bytes * params[i];
        sync.wire_s[i] = ms_collective_wire_s(&laws[groups[i]], size_bytes);
        sync.all_s += ms_collective_s(&laws[groups[i]], size_bytes);
        sync.share[i] = ms_link_share_of(workload, &links->sync_span[groups[i]],
                                         collective, size_bytes, sync.wire_s[i]);
    }
    return sync;
}

/* Seconds of exposed communication that lose bandwidth to gathers at the same time. Only
 * transfers lose, no latency: a collective whose latency is shorter loses no more. */
static double contended_s(const ms_workload *workload, const ms_bill_comm *comm,
                          const ms_links *links, const sync_share *sync)
{
    const ms_collective_law *law = &links->law[comm->axis][comm->collective];
    double seconds = ms_collective_s(law, comm->size_bytes),
           wire_s = ms_collective_wire_s(law, comm->size_bytes);
    if (sync->all_s <= 0.0 || seconds <= 0.0)
        return 0.0;
    ms_link_share own =
        ms_link_share_of(workload, &links->span[comm->axis],
                         (ms_collective)comm->collective, comm->size_bytes, wire_s);
    double both_s = sync->wire_s[0] * ms_contended_frac(own, sync->share[0]) +
                    sync->wire_s[1] * ms_contended_frac(own, sync->share[1]);
    return wire_s * comm->count * both_s / sync->all_s;
}

static double pass_contended_s(const ms_workload *workload, const ms_bill *bill, int pass,
                               const ms_links *links, const sync_share *sync)
{
    double seconds = 0.0;
    for (int i = 0; i < bill->num_comms[pass]; i++)
        seconds += contended_s(workload, &bill->comms[pass][i], links, sync);
    return seconds;
}

static void price_contention(const ms_workload *workload, const ms_bill *bill,
                             const ms_links *links, ms_block_cost *block)
{
    if (links->alone)
        return;
    sync_share sync = share_of_sync(workload, bill, links);
    double weight_s = pass_contended_s(workload, bill, MS_BILL_WEIGHT, links, &sync);
    block->contended_forward_s =
        ms_min(pass_contended_s(workload, bill, MS_BILL_FORWARD, links, &sync),
               block->forward_s - block->forward_host_s);
    block->contended_backward_s =
        ms_min(pass_contended_s(workload, bill, MS_BILL_BACKWARD, links, &sync),
               block->backward_s - block->backward_host_s);
    block->contended_weight_s = ms_min(weight_s, block->weight_s - block->weight_host_s);
    block->contended_input_s = ms_min(ms_max(block->contended_backward_s - weight_s, 0.0),
                                      block->input_s - block->input_host_s);
}

static const ms_bill_exchange forward_exchanges[2] = {MS_EXCHANGE_DISPATCH,
                                                      MS_EXCHANGE_COMBINE};
static const ms_bill_exchange backward_exchanges[2] = {MS_EXCHANGE_COMBINE_BACKWARD,
                                                       MS_EXCHANGE_DISPATCH_BACKWARD};

static double exchange_s(const ms_bill *bill, const ms_links *links, int exchange)
{
    double size_bytes = bill->segments.exchange_bytes[exchange];
    int collective = bill->segments.exchange_collective[exchange];
    return size_bytes > 0.0
               ? ms_collective_s(&links->law[MS_BILL_EP][collective], size_bytes)
               : 0.0;
}

/* Seconds of an exchange that shared experts hide. */
static double hidden_exchange_s(const ms_workload *workload, const ms_bill *bill,
                                const ms_links *links, int exchange)
{
    double gained_frac = 1.0 - workload->stack->interference_frac.value;
    return gained_frac * ms_min(exchange_s(bill, links, exchange),
                                bill->segments.exchange_beside_s[exchange]);
}

/* Seconds that compute waits for two exchanges. */
static double exposed_exchange_s(const ms_workload *workload, const ms_bill *bill,
                                 const ms_links *links, const ms_bill_exchange which[2])
{
    double seconds = 0.0;
    for (int i = 0; i < 2; i++)
        seconds += exchange_s(bill, links, which[i]) -
                   hidden_exchange_s(workload, bill, links, which[i]);
    return seconds;
}

/* Sets the seconds of both halves of a backward from those of their kernels and exposed
 * communication, `input_s` and `weight_s`. The host launches kernel after kernel at one
 * pace, whatever the kernels take. */
static void price_halves(ms_block_cost *block, const ms_bill *bill, double input_s,
                         double weight_s)
{
    double host_s = ms_max(block->backward_launch_s, block->copies_s);
    int kernels = bill->kernels[MS_BILL_BACKWARD];
    double weight_frac = kernels > 0 ? (double)bill->weight_kernels / kernels : 0.0;
    block->input_s = ms_with_host_s(input_s, (1.0 - weight_frac) * host_s);
    block->weight_s = ms_with_host_s(weight_s, weight_frac * host_s);
    block->input_host_s = block->input_s - input_s;
    block->weight_host_s = block->weight_s - weight_s;
}

/* Prices a block. `layers`: number of layers that keep the host as busy as the block. */
static ms_block_cost price_block(const moved_block *b, bool async_tp, double layers)
{
    const ms_workload *workload = b->workload;
    const ms_bill *bill = b->bill;
    const ms_links *links = b->links;
    ms_block_cost block = {.dense_params = bill->dense_params,
                           .expert_params = bill->expert_params,
                           .frozen = bill->frozen,
                           .update = &bill->update,
                           .memory = bill->memory,
                           .forward_compute_s = bill->compute_s[MS_BILL_FORWARD],
                           .backward_compute_s = bill->compute_s[MS_BILL_BACKWARD]};
    double accumulate_s =
        ms_stream_s(&workload->pricer, workload->stack->accumulate_bytes.value *
                                           (bill->dense_params + bill->expert_params));
    block.backward_compute_s += accumulate_s;
    double forward = block.forward_compute_s +
                     pass_exposed_s(workload, bill, MS_BILL_FORWARD, links, async_tp);
    double backward = block.backward_compute_s +
                      pass_exposed_s(workload, bill, MS_BILL_BACKWARD, links, async_tp);
    block.copies_s = ms_host_activations_s(workload, bill, links);
    block.forward_launch_s = ms_host_s(workload, bill, links, layers, MS_BILL_FORWARD);
    block.backward_launch_s = ms_host_s(workload, bill, links, layers, MS_BILL_BACKWARD);
    block.forward_s =
        ms_with_host_s(forward, ms_max(block.forward_launch_s, block.copies_s));
    block.backward_s =
        ms_with_host_s(backward, ms_max(block.backward_launch_s, block.copies_s));
    block.forward_host_s = block.forward_s - forward;
    block.backward_host_s = block.backward_s - backward;
    double weight = bill->weight_s + accumulate_s +
                    pass_exposed_s(workload, bill, MS_BILL_WEIGHT, links, async_tp);
    price_halves(&block, bill, ms_max(backward - weight, 0.0), weight);
    block.exchange_forward_s =
        exposed_exchange_s(workload, bill, links, forward_exchanges);
    block.exchange_backward_s =
        exposed_exchange_s(workload, bill, links, backward_exchanges);
    price_sync(b, &block);
    price_contention(workload, bill, links, &block);
    return block;
}

/* ---- pairs of layers ---- */

/* Fills a layer's times as halves of overlapped pairs (overlapped_pair.h in
 * costmodel/cost). Only token exchanges are hidden in these: other communication stays exposed. */
static void price_pair(const ms_workload *workload, const ms_bill *bill,
                       const ms_links *links, const ms_block_cost *block,
                       ms_pair_forward *f, ms_pair_backward *b)
{
    const ms_bill_segments *s = &bill->segments;
    *f = (ms_pair_forward){.attention_s = s->forward_s[MS_SEGMENT_ATTENTION],
                           .experts_s = s->forward_s[MS_SEGMENT_EXPERTS],
                           .result_s = s->forward_s[MS_SEGMENT_RESULT],
                           .dispatch_s = exchange_s(bill, links, MS_EXCHANGE_DISPATCH),
                           .combine_s = exchange_s(bill, links, MS_EXCHANGE_COMBINE)};
    f->exposed_s = ms_max(
        block->forward_s - block->forward_host_s - f->attention_s - f->experts_s -
            f->result_s - exposed_exchange_s(workload, bill, links, forward_exchanges),
        0.0);
    f->host_s = ms_max(block->forward_launch_s, block->copies_s);
    *b = (ms_pair_backward){
        .result_s = s->input_s[MS_SEGMENT_RESULT] + s->weight_s[MS_SEGMENT_RESULT],
        .experts_s = s->input_s[MS_SEGMENT_EXPERTS],
        .weight_s = s->weight_s[MS_SEGMENT_EXPERTS],
        .attention_s =
            s->input_s[MS_SEGMENT_ATTENTION] + s->weight_s[MS_SEGMENT_ATTENTION],
        .combine_s = exchange_s(bill, links, MS_EXCHANGE_COMBINE_BACKWARD),
        .dispatch_s = exchange_s(bill, links, MS_EXCHANGE_DISPATCH_BACKWARD)};
    b->exposed_s =
        ms_max(block->backward_s - block->backward_host_s - b->result_s - b->experts_s -
                   b->weight_s - b->attention_s -
                   exposed_exchange_s(workload, bill, links, backward_exchanges),
               0.0);
    b->host_s = ms_max(block->backward_launch_s, block->copies_s);
}

double ms_shared_head_params(const ms_workload *workload, const ms_bill *head)
{
    return (workload->model->tied_embeddings ? head->head_params : 0.0) +
           head->next_embedding_params;
}

/* Costs of a head without the weights that it shares with an embedding on its rank: the
 * embedding's block gathers and reduces those. */
static ms_block_cost head_without_shared(const moved_block *head, ms_block_cost block)
{
    ms_bill rest = *head->bill;
    rest.dense_params -= ms_shared_head_params(head->workload, head->bill);
    if (head->workload->model->tied_embeddings)
        rest.frozen.dense -= head->bill->frozen_head_bytes;
    block.dense_params = rest.dense_params;
    block.frozen = rest.frozen;
    moved_block moved = *head;
    moved.bill = &rest;
    price_sync(&moved, &block);
    return block;
}

/* Priced program (ms_bill) of the first layer kind, in any recompute mode of `modes`: its
 * forward does not depend on the mode. */
static const ms_bill *layer_of(const ms_bill_set *bills, unsigned modes)
{
    assert((modes & ((1U << MS_NUM_LAYER_MODES) - 1U)) != 0);
    int mode = 0;
    while (mode < MS_NUM_LAYER_MODES - 1 && (modes >> mode & 1U) == 0)
        mode++;
    return bills->layer[0][mode];
}

/* Bytes of the mask of attention that Megatron-LM's data loader makes unless told
 * otherwise, whether or not a kernel reads it: a rank keeps the part of its queries.
 * Source: megatron/training/utils.py, get_batch_on_this_tp_rank, get_batch_on_this_cp_rank;
 * --no-create-attention-mask-in-dataloader (from memory). */
static double mask_bytes(const ms_workload *workload, const ms_plan *plan)
{
    double keys = (double)workload->sequence_length;
    double queries = keys * (double)plan->microbatch / (double)plan->size[MS_CP];
    return workload->stack->makes_mask ? keys * queries : 0.0;
}

double ms_gathered_tokens_bytes(const ms_workload *workload, const ms_plan *plan)
{
    double ranks = (double)(plan->ep * plan->etp);
    if (!workload->stack->gathers_tokens || ranks <= 1.0)
        return 0.0;
    double tokens = (double)(workload->sequence_length * plan->microbatch) /
                    (double)(plan->size[MS_CP] * plan->size[MS_TP]);
    return tokens * ranks * (double)workload->model->hidden *
           ms_stored_bytes(workload->compute);
}

void ms_block_costs_price(const ms_workload *workload, const ms_bill_set *bills,
                          const ms_links *links, const ms_plan *plan, unsigned modes,
                          ms_block_costs *out)
{
    bool async_tp = plan->async_tp;
    const ms_bill *layer = layer_of(bills, modes);
    const moved_block embed = {workload, links, &bills->embed, 1.0};
    const moved_block head = {workload, links, &bills->head, 1.0};
    out->embed = price_block(&embed, async_tp, ms_host_layers(&bills->embed, layer));
    out->head = price_block(&head, async_tp, ms_host_layers(&bills->head, layer));
    if (ms_head_shares_weights(workload))
        out->tied_head = head_without_shared(&head, out->head);
    for (int mode = 0; mode < MS_NUM_LAYER_MODES; mode++) {
        if ((modes >> mode & 1U) == 0)
            continue;
        for (int kind = 0; kind < workload->model->num_kinds; kind++) {
            const ms_bill *bill = bills->layer[kind][mode];
            const moved_block moved = {workload, links, bill,
                                       ms_unit_layers(workload, bill, kind)};
            out->layer[kind][mode] = price_block(&moved, async_tp, 1.0);
            price_pair(workload, bill, links, &out->layer[kind][mode],
                       &out->pair_forward[kind][mode], &out->pair_backward[kind][mode]);
        }
    }
    out->head_params = bills->head.head_params;
    out->held_bytes =
        mask_bytes(workload, plan) + ms_gathered_tokens_bytes(workload, plan);
    ms_message_price(workload, bills, links, out);
}
