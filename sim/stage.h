/* From bills to the durations of a schedule's actions: parts (embedding, a layer, the head) priced on the plan's links, summed
 * into virtual stages, and completed by the traffic of parameters and gradients that the sharding asks for. */
#ifndef MS_SIM_STAGE_H
#define MS_SIM_STAGE_H

#include "costmodel/pair.h"
#include "sim/links.h"
#include "sim/replay.h"
#include "sim/workload.h"

/* How parameters, gradients and optimizer states are spread over dp_shard x cp. */
typedef enum ms_sharding {
    MS_ZERO_0, /* nothing is sharded; gradients are all-reduced with the last micro-batch */
    MS_ZERO_1, /* optimizer: gradients reduce-scattered with the last micro-batch, parameters gathered with the first */
    MS_ZERO_2, /* and gradients: reduce-scattered with every micro-batch */
    MS_ZERO_3, /* and parameters: gathered for every forward and backward */
    MS_ZERO_3_KEEP, /* parameters sharded, but gathered once per step and kept until the last backward; gradients add up whole
                         and are reduced once (reshard_after_forward false; PyTorch torch/distributed/pipelining/schedules.py) */
    MS_NUM_SHARDINGS
} ms_sharding;

ms_sharding ms_plan_sharding(const ms_plan *plan);
/* Whether gradients are reduced with every micro-batch and kept as shards. */
bool ms_shards_grads(ms_sharding sharding);
/* Whether parameters and gradients travel beside compute. */
bool ms_overlaps_sync(const ms_stack *stack, ms_sharding sharding);

/* One part of the model and one micro-batch, on the plan's links. */
typedef struct ms_part {
    double forward_s,
        backward_s; /* compute, exposed communication and waiting for the host */
    double forward_compute_s, backward_compute_s;
    double forward_host_s, backward_host_s; /* what waiting for the host adds */
    double gather_s,
        reduce_s;        /* of the part's parameters and gradients over the shards */
    double replicate_s;  /* all-reduce of the reduced shards over dp_replicate */
    double all_reduce_s; /* without sharding: over all data-parallel ranks */
    double tp_sync_s;    /* gradients that are partial over tp, once a step */
    double
        weight_s; /* of backward_s: gradients of weights, which a split backward delays */
    double exchange_forward_s, exchange_backward_s; /* all-to-alls of experts in them */
    double dense_params, expert_params;
    ms_bill_memory memory;
} ms_part;

/* Parts of one bill set on one set of links; layers by kind and recompute mode. */
typedef struct ms_parts {
    ms_part embed, head;
    ms_part
        tied_head; /* of a rank that holds the embedding too, when one matrix serves both */
    ms_part layer[MS_MAX_LAYER_KINDS][MS_NUM_RECOMPUTE];
    /* layers as halves of a pair; those without exchanges take as long in a pair as alone */
    ms_pair_forward pair_forward[MS_MAX_LAYER_KINDS][MS_NUM_RECOMPUTE];
    ms_pair_backward pair_backward[MS_MAX_LAYER_KINDS][MS_NUM_RECOMPUTE];
    double head_params;
    double send_s;     /* of a micro-batch's activations to the next stage */
    double send_bytes; /* of them on a rank */
    double wire_bytes; /* of those that it sends */
} ms_parts;

/* What a reduce-scatter of `num_params` gradients over `num_shards` costs beside the collective where the stack adds_reduced_gradients: its buffer is cleared (one
 * write), and what arrives is added to the shard (two reads, one write), all from memory. 0 otherwise. */
double ms_settle_gradients_s(const ms_workload *workload, double num_params,
                             long num_shards);

/* Dense parameters of a part that a gather, or with `reduces` a reduction of gradients moves; of `dense_params` a matrix that the head shares with the embedding
 * beside it is no part. Where the stack has fixed_unit_rooms and the sharding moves one unit after the other, such a head moves it for itself as well. */
double ms_moved_dense_params(const ms_workload *workload, ms_sharding sharding,
                             const ms_bill *bill, double dense_params, bool reduces);

/* Seconds that all collectives of one entry of a bill add to the critical path of a micro-batch. */
double ms_comm_exposed_s(const ms_workload *workload, const ms_bill_comm *comm,
                         const ms_links *links, bool async_tp);

/* Whether the collective runs in chunks beside its product: gathers and scatters of asynchronous TP inside one domain. */
bool ms_comm_is_async(const ms_bill_comm *comm, const ms_links *links, bool async_tp);

/* Prices the parts for the recompute modes of `modes`. */
void ms_parts_price(const ms_workload *workload, const ms_bill_set *bills,
                    const ms_links *links, bool async_tp, unsigned modes, ms_parts *out);

/* Bytes of activations and logits on a rank, and of the gradient of the head's matrix while it is made. */
typedef struct ms_live_bytes {
    double activation_bytes, logits_bytes, head_grad_bytes;
} ms_live_bytes;

/* A virtual stage: its parts summed. */
typedef struct ms_stage {
    ms_part sum;    /* but for memory.transient */
    bool pipelined; /* other stages are before or after it */
    /* of a backward or half, from the last part to the first, when most is alive: beyond what the stage keeps of the micro-batch when it begins (sum.memory.saved; delayed in
     * the half for weights). The parts behind the one at work have given up theirs: all of it, or what does not wait for the second half, or what waited. */
    ms_live_bytes transient[MS_NUM_BILL_HALVES];
    /* ZeRO-3: part by part, beside gathers and reductions */
    double overlapped_forward_s, overlapped_backward_s;
    double overlapped_input_s, overlapped_weight_s; /* of a split backward */
    double unit_gather_s, unit_reduce_s,
        unit_all_reduce_s; /* of one layer: what nothing can hide */
    /* what a head beside its embedding gathers and reduces of their matrix once more, unit by unit (ms_moved_dense_params) */
    double tied_gather_s, tied_reduce_s;
    double unit_dense_params,
        unit_expert_params; /* the largest unit that is gathered at once */
    long num_layers;
} ms_stage;

/* Which layers a stage holds and how they are recomputed. */
typedef struct ms_stage_layout {
    long first_layer, num_layers;
    bool has_embedding, has_head;
    bool
        head_beside_embedding; /* on one rank, if not in one stage: a tied matrix is there once */
    ms_recompute recompute;
    long recompute_layers; /* MS_RECOMPUTE_FULL: the first so many of the stage; 0: all */
} ms_stage_layout;

/* The layout of a stage of the split. */
ms_stage_layout ms_split_layout(const ms_split *split, int stage, ms_recompute recompute,
                                long recompute_layers);

void ms_stage_make(const ms_workload *workload, const ms_parts *parts,
                   const ms_stage_layout *layout, ms_stage *out);

/* What a forward of stage f beside a backward of stage b takes less than one after the other: their layers run in pairs, the first of the
 * forward with the last, which is the first of the backward. */
double ms_pair_saved_s(const ms_workload *workload, const ms_parts *parts,
                       const ms_stage_layout *f, const ms_stage_layout *b);

/* Durations of the stage's actions under a sharding, as if it were the first chunk of its rank: its release is that of its own
 * parameters. Gathers for a whole step start with it, on every rank at once; a stage's first forward goes on part by part as they arrive,
 * so it ends no earlier than its last part's forward after the gather. */
ms_stage_times ms_stage_durations(const ms_workload *workload, const ms_stage *stage,
                                  ms_sharding sharding, double send_s);

#endif
