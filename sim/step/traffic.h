/* List of all collectives of one pipeline rank in a step, one entry for equal ones.
 * Predictions sum it by mesh axis, explanations print it. */
#ifndef MS_SIM_STEP_TRAFFIC_H
#define MS_SIM_STEP_TRAFFIC_H

#include "sim/step/planned.h"

/* Communication groups, in the order of ms_links_spans. */
typedef enum ms_traffic_group {
    MS_TRAFFIC_TP = MS_BILL_TP,
    MS_TRAFFIC_CP = MS_BILL_CP,
    MS_TRAFFIC_EP = MS_BILL_EP,
    MS_TRAFFIC_FSDP = MS_NUM_BILL_AXES + MS_SYNC_FSDP,
    MS_TRAFFIC_EXPERT_FSDP = MS_NUM_BILL_AXES + MS_SYNC_EXPERT_FSDP,
    MS_TRAFFIC_REPLICATE = MS_NUM_BILL_AXES + MS_SYNC_REPLICATE,
    MS_TRAFFIC_ALL = MS_NUM_BILL_AXES + MS_SYNC_ALL,
    MS_TRAFFIC_EXPERT_ALL = MS_NUM_BILL_AXES + MS_SYNC_EXPERT_ALL,
    MS_TRAFFIC_SECONDARY = MS_NUM_BILL_AXES + MS_SYNC_SECONDARY,
    MS_TRAFFIC_EXPERT_SECONDARY = MS_NUM_BILL_AXES + MS_SYNC_EXPERT_SECONDARY,
    MS_TRAFFIC_PP,
    MS_TRAFFIC_WORLD,
    MS_NUM_TRAFFIC_GROUPS
} ms_traffic_group;
_Static_assert(MS_NUM_TRAFFIC_GROUPS == MS_NUM_SPANS, "groups are the spans of a plan");

/* Phase of a step in which a collective runs, and in which its time counts. */
typedef enum ms_traffic_phase {
    MS_TRAFFIC_FORWARD,   /* collectives in a block's forward */
    MS_TRAFFIC_BACKWARD,  /* collectives in a block's backward or recomputation */
    MS_TRAFFIC_STAGE,     /* messages between stages; waiting counts as bubble */
    MS_TRAFFIC_PARAMS,    /* gathers of parameters */
    MS_TRAFFIC_GRADS,     /* reductions of gradients */
    MS_TRAFFIC_OPTIMIZER, /* collectives before the optimizer (in optimizer_s) */
    MS_NUM_TRAFFIC_PHASES
} ms_traffic_phase;
extern const char *const ms_traffic_phase_names[]; /* "forward" ..., NULL */

typedef enum ms_traffic_cause {
    MS_CAUSE_NODES,           /* tensors of a block that change placement (bill->comms) */
    MS_CAUSE_GATHER_FORWARD,  /* gathers of parameters for the forward */
    MS_CAUSE_GATHER_BACKWARD, /* gathers of parameters again for the backward */
    MS_CAUSE_REDUCE_SCATTER,  /* reductions of gradients to shards */
    MS_CAUSE_ALL_REDUCE,      /* all-reduces of whole gradients */
    MS_CAUSE_REPLICATE,       /* all-reduces of shards over dp_replicate */
    MS_CAUSE_TP_PARTIAL, /* sums over tp of gradients of which each rank has a part */
    MS_CAUSE_SEND_FORWARD,
    MS_CAUSE_SEND_BACKWARD,
    MS_CAUSE_NORM,   /* all-reduce of the gradient norm */
    MS_CAUSE_TIED,   /* exchange of a tied matrix's gradient between its stages */
    MS_CAUSE_REPLICA /* exchange of gradients between a stage's two copies */
} ms_traffic_cause;

typedef struct ms_traffic_entry {
    ms_traffic_phase phase;
    ms_traffic_group group;
    ms_collective collective;
    ms_traffic_cause cause;
    bool has_block; /* the collective belongs to block `block`, not to the rank */
    ms_held_block block;
    int comm;          /* MS_CAUSE_NODES: index into bill->comms[pass] */
    double size_bytes; /* size of one collective, as in ms_collective_s */
    double wire_bytes; /* bytes that one rank sends per collective */
    double nic_bytes;  /* part of wire_bytes over a NIC */
    double one_s;      /* seconds of one collective */
    ms_algorithm algorithm;
    int num_chunks;   /* above 1: chunks overlap with compute (asynchronous TP) */
    double per_block; /* number of collectives per block and micro-batch */
    double count;     /* number of collectives per step */
    double exposed_s; /* seconds per step that compute waits for these collectives */
} ms_traffic_entry;

typedef struct ms_traffic {
    int rank;
    int num_entries;
    ms_traffic_entry *entries;
} ms_traffic;

/* Lists the collectives of one pipeline rank in a step. Lives in cx->arena. */
ms_traffic ms_traffic_make(ms_ctx *cx, const ms_planned *planned, int rank);

/* Subtracts the seconds per step that overlapped pairs of forward and backward hide from
 * the exposed token exchanges. */
void ms_traffic_hide_pairs(ms_traffic *traffic, double hidden_s);

/* Divides the part of exposed_comm_s (seconds per step) that no entry of a block explains
 * among the transfers of parameters and gradients, in proportion to their seconds. */
void ms_traffic_share_exposure(ms_traffic *traffic, double exposed_comm_s);

/* Sets exposed_s of parameter and gradient transfers to NaN: unknown on this rank. */
void ms_traffic_hide_exposure(ms_traffic *traffic);

/* The cost formula (seconds by bytes) of a collective of a group. */
const ms_collective_law *ms_traffic_law(const ms_links *links, ms_traffic_group group,
                                        ms_collective collective);

/* The group over which dense parameters, or those of experts (`expert`), are sharded;
 * `sharded` false: over which they are replicated. Dense and expert parameters have the
 * same group if both are placed alike. */
ms_traffic_group ms_traffic_state_group(const ms_plan *plan, bool expert, bool sharded);

/* The group over which a backward gathers parameters. */
ms_traffic_group ms_traffic_regather_group(const ms_planned *planned, bool expert);

/* How a group of a pipeline rank maps to the network levels, and the name of the level
 * that it spans. */
const ms_span *ms_traffic_span(const ms_planned *planned, int rank,
                               ms_traffic_group group);
const char *ms_traffic_tier(const ms_planned *planned, int rank, ms_traffic_group group);

/* Name of a group: "tp", "cp", "ep", "pp", "world", "dp_replicate"; if parameters are
 * sharded "dp_shard" ("fsdp" if cp is included) and "efsdp" (experts); if they are not
 * "dp" ("dp_cp" if cp is included) and "edp" (experts); "hpz" and "ehpz" (experts): of
 * parameters sharded between forward and backward. */
const char *ms_traffic_group_name(const ms_plan *plan, ms_traffic_group group);

#endif
