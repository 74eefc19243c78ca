/* Bills on the plan's links: the seconds of each part (embedding, a layer, the head), the
 * communication that nothing hides in them, and the traffic of its parameters and
 * gradients. */
#ifndef MS_SIM_PARTS_H
#define MS_SIM_PARTS_H

#include "costmodel/pair.h"
#include "sim/links.h"
#include "sim/workload.h"

/* How parameters, gradients and optimizer states are spread over dp_shard x cp. */
typedef enum ms_sharding {
    /* nothing is sharded; gradients are all-reduced with the last micro-batch */
    MS_ZERO_0,
    /* optimizer: gradients reduce-scattered with the last micro-batch, parameters
     * gathered with the first */
    MS_ZERO_1,
    MS_ZERO_2, /* and gradients: reduce-scattered with every micro-batch */
    MS_ZERO_3, /* and parameters: gathered for every forward and backward */
    /* parameters sharded, but gathered once per step and kept until the last backward;
     * gradients add up whole and are reduced once (reshard_after_forward false; PyTorch
     * torch/distributed/pipelining/schedules.py) */
    MS_ZERO_3_KEEP,
    MS_NUM_SHARDINGS
} ms_sharding;

ms_sharding ms_plan_sharding(const ms_plan *plan);
/* Whether gradients are reduced with every micro-batch and kept as shards. */
bool ms_shards_grads(ms_sharding sharding);
/* Whether parameters and gradients travel beside compute. */
bool ms_overlaps_sync(const ms_stack *stack, ms_sharding sharding);

/* One part of the model and one micro-batch, on the plan's links. */
typedef struct ms_part {
    /* compute, exposed communication and waiting for the host */
    double forward_s, backward_s;
    double forward_compute_s, backward_compute_s;
    double forward_host_s, backward_host_s; /* what waiting for the host adds */
    /* of the part's parameters and gradients over the shards */
    double gather_s, reduce_s;
    double replicate_s;  /* all-reduce of the reduced shards over dp_replicate */
    double all_reduce_s; /* without sharding: over all data-parallel ranks */
    double tp_sync_s;    /* gradients that are partial over tp, once a step */
    /* of backward_s: gradients of weights, which a split backward delays */
    double weight_s;
    /* of forward_s, backward_s and weight_s: communication that loses as much to gathers
     * and reductions beside it, on the same links */
    double contended_forward_s, contended_backward_s, contended_weight_s;
    double exchange_forward_s, exchange_backward_s; /* all-to-alls of experts in them */
    double dense_params, expert_params;
    ms_bill_memory memory;
} ms_part;

/* Parts of one bill set on one set of links; layers by kind and recompute mode. */
typedef struct ms_parts {
    ms_part embed, head;
    /* of a rank that holds the embedding too, without what both share: its matrix where
     * tied, and copies of the embedding for multi-token prediction */
    ms_part tied_head;
    ms_part layer[MS_MAX_LAYER_KINDS][MS_NUM_RECOMPUTE];
    /* layers as halves of a pair; those without exchanges take as long in a pair as
     * alone */
    ms_pair_forward pair_forward[MS_MAX_LAYER_KINDS][MS_NUM_RECOMPUTE];
    ms_pair_backward pair_backward[MS_MAX_LAYER_KINDS][MS_NUM_RECOMPUTE];
    double head_params;
    double send_s;     /* of a micro-batch's activations to the next stage */
    double send_bytes; /* of them on a rank */
    double wire_bytes; /* of those that it sends */
} ms_parts;

/* What a reduce-scatter of `num_params` gradients over `num_shards` costs beside the
 * collective where the stack adds_reduced_gradients: its buffer is cleared (one write),
 * and what arrives is added to the shard (two reads, one write), all from memory. 0
 * otherwise. */
double ms_settle_gradients_s(const ms_workload *workload, double num_params,
                             long num_shards);

/* Dense parameters of a part that a gather, or with `reduces` a reduction of gradients
 * moves; of `dense_params` a matrix that the head shares with the embedding beside it is
 * no part. Where the stack has fixed_unit_rooms and the sharding moves one unit after the
 * other, such a head moves it for itself as well. */
double ms_moved_dense_params(const ms_workload *workload, ms_sharding sharding,
                             const ms_bill *bill, double dense_params, bool reduces);

/* Seconds that all collectives of one entry of a bill add to the critical path of a
 * micro-batch. */
double ms_comm_exposed_s(const ms_workload *workload, const ms_bill_comm *comm,
                         const ms_links *links, bool async_tp);

/* Whether the collective runs in chunks beside its product: gathers and scatters of
 * asynchronous TP inside one domain. */
bool ms_comm_is_async(const ms_bill_comm *comm, const ms_links *links, bool async_tp);

/* Parameters of the head's program that a rank holds once with its embedding: the matrix
 * where both are tied, and copies of the embedding for multi-token prediction. */
double ms_shared_head_params(const ms_workload *workload, const ms_bill *head);

/* Prices the parts for the recompute modes of `modes`, a bit each; one at least. Of the
 * plan it takes what MS_DECIDES_PRICES. */
void ms_parts_price(const ms_workload *workload, const ms_bill_set *bills,
                    const ms_links *links, const ms_plan *plan, unsigned modes,
                    ms_parts *out);

#endif
