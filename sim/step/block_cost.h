/* Block costs: seconds of each block of the model (embedding, layer, head) on the plan's
 * links, with exposed communication and traffic of parameters and gradients. */
#ifndef MS_SIM_STEP_BLOCK_COST_H
#define MS_SIM_STEP_BLOCK_COST_H

#include "costmodel/cost/pair.h"
#include "sim/step/links.h"
#include "sim/step/workload.h"

/* Sharding of parameters, gradients and optimizer states over dp_shard x cp. */
typedef enum ms_sharding {
    MS_ZERO_0, /* no sharding; gradients are all-reduced with the last micro-batch */
    /* optimizer states are sharded: gradients are reduce-scattered with the last
     * micro-batch, parameters gathered with the first */
    MS_ZERO_1,
    MS_ZERO_2, /* ZeRO-1, and gradients are reduce-scattered with every micro-batch */
    MS_ZERO_3, /* ZeRO-2, and parameters are gathered for every forward and backward */
    /* ZeRO-3 without reshard after forward: parameters are gathered once per step,
     * gradients accumulate unsharded and are reduced once (PyTorch
     * torch/distributed/pipelining/schedules.py) */
    MS_ZERO_3_NO_RESHARD,
    MS_NUM_SHARDINGS
} ms_sharding;

ms_sharding ms_plan_sharding(const ms_plan *plan);
/* Whether gradients are reduced with every micro-batch and stored as shards. */
bool ms_shards_grads(ms_sharding sharding);
/* Whether gathers of parameters and reductions of gradients overlap with compute. */
bool ms_overlaps_sync(const ms_stack *stack, ms_sharding sharding);

/* Costs of one block and one micro-batch on the plan's links. */
typedef struct ms_block_cost {
    /* seconds of compute, exposed communication and waiting for the host */
    double forward_s, backward_s;
    double forward_compute_s, backward_compute_s;
    double forward_host_s, backward_host_s; /* seconds that waiting for the host adds */
    double gather_s,
        reduce_s;        /* gather of parameters, reduction of gradients to shards */
    double replicate_s;  /* all-reduce of reduced shards over dp_replicate */
    double all_reduce_s; /* all-reduce over all data-parallel ranks, unsharded */
    double tp_sync_s;    /* all-reduce, once per step, of gradients partial over tp */
    double weight_s;     /* part of backward_s: weight gradients (delayed if split) */
    /* parts of forward_s, backward_s and weight_s: communication that loses bandwidth
     * to concurrent gathers and reductions on the same links */
    double contended_forward_s, contended_backward_s, contended_weight_s;
    /* parts of forward_s and backward_s: all-to-alls of experts */
    double exchange_forward_s, exchange_backward_s;
    double dense_params, expert_params;
    ms_bill_memory memory;
} ms_block_cost;

/* Costs of all blocks on a plan's links, from its priced programs (ms_bill_set); layers by
 * kind and recompute mode. */
typedef struct ms_block_costs {
    ms_block_cost embed, head;
    /* the head on the embedding's rank, without ms_shared_head_params */
    ms_block_cost tied_head;
    ms_block_cost layer[MS_MAX_LAYER_KINDS][MS_NUM_RECOMPUTE];
    /* Layers as halves of an overlapped pair; those without token exchanges take as
     * long in a pair as alone. */
    ms_pair_forward pair_forward[MS_MAX_LAYER_KINDS][MS_NUM_RECOMPUTE];
    ms_pair_backward pair_backward[MS_MAX_LAYER_KINDS][MS_NUM_RECOMPUTE];
    double head_params;
    double send_s; /* seconds in which a micro-batch's activations reach the next stage */
    double send_bytes; /* bytes of a micro-batch's activations on a rank */
    double wire_bytes; /* bytes of those activations that a rank sends */
} ms_block_costs;

/* Seconds in HBM that a reduce-scatter of gradients costs besides the collective, where
 * the stack adds_reduced_gradients: its buffer is cleared (one write), and the result is
 * added to the shard (two reads, one write). 0 otherwise. */
double ms_accumulate_gradients_s(const ms_workload *workload, double num_params,
                                 long num_shards);

/* Number of dense parameters of a block that a gather moves, or with `reduces` a
 * reduction of gradients. `dense_params` excludes a matrix that the head shares with
 * an embedding on its rank; the number includes it where the sharding moves units one by
 * one and the stack has fixed_unit_rooms. */
double ms_moved_dense_params(const ms_workload *workload, ms_sharding sharding,
                             const ms_bill *bill, double dense_params, bool reduces);

/* Seconds that all collectives of one ms_bill entry add to the critical path of a
 * micro-batch. */
double ms_comm_exposed_s(const ms_workload *workload, const ms_bill_comm *comm,
                         const ms_links *links, bool async_tp);

/* Whether a collective is split into chunks that overlap with its GEMM: gathers and
 * scatters of asynchronous TP inside one domain. */
bool ms_comm_is_async(const ms_bill_comm *comm, const ms_links *links, bool async_tp);

/* Number of parameters that the head shares with an embedding on its rank: the matrix
 * where both are tied, and copies of the embedding for multi-token prediction. */
double ms_shared_head_params(const ms_workload *workload, const ms_bill *head);

/* Fills the costs of all blocks for the recompute modes in `modes`, a bit each; at
 * least one. Of the plan it reads the choices of MS_DECIDES_PRICES. */
void ms_block_costs_price(const ms_workload *workload, const ms_bill_set *bills,
                          const ms_links *links, const ms_plan *plan, unsigned modes,
                          ms_block_costs *out);

#endif
