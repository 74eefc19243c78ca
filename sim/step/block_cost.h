/* Costs of each block of the model (embedding, layer, head) on a plan's network links:
 * compute, exposed communication, and transfers of parameters and gradients. */
#ifndef MS_SIM_STEP_BLOCK_COST_H
#define MS_SIM_STEP_BLOCK_COST_H

#include "costmodel/cost/overlapped_pair.h"
#include "sim/step/links.h"
#include "sim/step/workload.h"

/* Sharding (ZeRO) of parameters, gradients and optimizer states over dp_shard x cp. */
typedef enum ms_sharding {
    MS_ZERO_0, /* no sharding; gradients are all-reduced once per step */
    /* optimizer states are sharded: gradients are reduce-scattered in the last
     * micro-batch of a step, parameters gathered for the first */
    MS_ZERO_1,
    MS_ZERO_2, /* ZeRO-1 with gradients reduce-scattered in every micro-batch */
    MS_ZERO_3, /* ZeRO-2 with parameters gathered for every forward and backward */
    /* ZeRO-3 without reshard after forward: parameters are gathered once per step,
     * gradients accumulate unsharded and are reduced once (PyTorch
     * torch/distributed/pipelining/schedules.py) */
    MS_ZERO_3_NO_RESHARD,
    MS_NUM_SHARDINGS
} ms_sharding;

ms_sharding ms_plan_sharding(const ms_plan *plan);
/* Whether gradients are reduced in every micro-batch, and stored as shards. */
bool ms_shards_grads(ms_sharding sharding);
/* Whether gathers of parameters and reductions of gradients overlap with compute. */
bool ms_overlaps_sync(const ms_stack *stack, ms_sharding sharding);

/* Costs of one block for one micro-batch, on the plan's network links. */
typedef struct ms_block_cost {
    /* seconds with compute, exposed communication and waiting for the host */
    double forward_s, backward_s;
    double forward_compute_s, backward_compute_s;
    /* seconds that waiting for the host adds: for its launches, or for copies of
     * activations to its memory and back */
    double forward_host_s, backward_host_s;
    double forward_launch_s,
        backward_launch_s; /* seconds in which the host launches it */
    double copies_s;       /* seconds of those copies, the same in both passes */
    double gather_s,
        reduce_s;        /* gather of parameters, reduction of gradients to shards */
    double replicate_s;  /* all-reduce of gradient shards over dp_replicate */
    double all_reduce_s; /* all-reduce of whole gradients over all data-parallel ranks */
    double tp_sync_s;    /* all-reduce over tp, once per step, of partial gradients */
    /* backward in two halves: gradients of inputs, of weights. Each half waits for its own
     * launches, so that both together may take longer than backward_s. */
    double input_s, weight_s;
    double input_host_s, weight_host_s;
    /* parts of forward_s, backward_s and weight_s: communication that loses bandwidth to
     * concurrent gathers and reductions on the same links */
    double contended_forward_s, contended_backward_s, contended_input_s,
        contended_weight_s;
    /* parts of forward_s and backward_s: token exchanges of expert parallelism */
    double exchange_forward_s, exchange_backward_s;
    double dense_params, expert_params;
    ms_frozen_bytes frozen;
    double frozen_gather_s; /* seconds that frozen parameters add to gather_s, ZeRO-3 */
    /* seconds by which a gather for a backward is shorter: it is over fewer ranks */
    double regather_saved_s;
    double unit_layers; /* blocks that move together (ms_unit_layers), 0: 1; gather_s and
                           the other seconds of transfers are a block's share */
    const ms_update_cost *update; /* costs of its parameters' update, the bill's */
    ms_bill_memory memory;
} ms_block_cost;

/* Costs of all blocks on a plan's network links; layers by kind and ms_layer_mode. */
typedef struct ms_block_costs {
    ms_block_cost embed, head;
    /* the head on the embedding's rank, without the parameters that both share */
    ms_block_cost tied_head;
    ms_block_cost layer[MS_MAX_LAYER_KINDS][MS_NUM_LAYER_MODES];
    /* Layers as halves of an overlapped pair of forward and backward. Without token
     * exchanges the pair takes as long as forward and backward one after the other. */
    ms_pair_forward pair_forward[MS_MAX_LAYER_KINDS][MS_NUM_LAYER_MODES];
    ms_pair_backward pair_backward[MS_MAX_LAYER_KINDS][MS_NUM_LAYER_MODES];
    double head_params;
    double send_s; /* seconds for a micro-batch's activations to reach the next stage */
    double send_bytes; /* bytes of activations that a rank passes on, per micro-batch */
    /* part of send_bytes that the rank itself sends; tp peers send the rest */
    double wire_bytes;
    /* a rank's buffers that outlive layers: the mask of attention, and the tokens that an
     * all-gather brings to experts */
    double held_bytes;
} ms_block_costs;

/* Seconds of HBM traffic to quantize the shard of `num_params` parameters that are
 * gathered over `group`, and to restore all of them; 0 unless the stack
 * quantizes_gathers. Source: ZeRO++ (Wang et al. 2023), section 3.1. */
double ms_quantize_gather_s(const ms_workload *workload, const ms_links *links,
                            ms_sync_group group, double num_params);

/* Seconds that a reduce-scatter of `num_params` gradients over `group` costs besides the
 * collective. In a stack that adds_reduced_gradients HBM traffic: one write to clear its
 * buffer, two reads and a write to add the result to the shard. With an optimizer on the
 * host the copy of the shard (ms_host_gradients_s). If the stack quantizes_reductions
 * the traffic of quantizing all gradients, and of restoring and adding what others send.
 * Otherwise 0. */
double ms_accumulate_gradients_s(const ms_workload *workload, const ms_links *links,
                                 ms_sync_group group, double num_params);

/* Number of a block's dense parameters that a gather moves, or with `reduces` a reduction
 * of gradients. In a stack with fixed_unit_buffers, if the sharding moves blocks one by
 * one: all of them; otherwise `dense_params`, which excludes a matrix that the head
 * shares with an embedding on its rank. */
double ms_moved_dense_params(const ms_workload *workload, ms_sharding sharding,
                             const ms_bill *bill, double dense_params, bool reduces);

/* Seconds per micro-batch that compute waits for `comm`, an entry of a block's
 * communication, which counts all equal collectives. */
double ms_comm_exposed_s(const ms_workload *workload, const ms_bill_comm *comm,
                         const ms_links *links, bool async_tp);

/* Whether a collective is split into chunks that overlap with a GEMM: all-gathers and
 * reduce-scatters of asynchronous TP inside one innermost network domain. */
bool ms_comm_is_async(const ms_bill_comm *comm, const ms_links *links, bool async_tp);

/* Number of parameters that the head shares with an embedding on its rank: a tied matrix,
 * and copies of the embedding for multi-token prediction. */
double ms_shared_head_params(const ms_workload *workload, const ms_bill *head);

/* Bytes of the buffer into which all tokens of the ranks that share experts are gathered,
 * one for all layers; 0 if they are not. Source: Megatron Core, token_dispatcher.py,
 * MoEAllGatherTokenDispatcher, use_global_buffer (from memory). */
double ms_gathered_tokens_bytes(const ms_workload *workload, const ms_plan *plan);

/* Prices all blocks in the recompute modes of the bit mask `modes`, at least one. Of the
 * plan only choices marked MS_DECIDES_PRICES are read. */
void ms_block_costs_price(const ms_workload *workload, const ms_bill_set *bills,
                          const ms_links *links, const ms_plan *plan, unsigned modes,
                          ms_block_costs *out);

#endif
