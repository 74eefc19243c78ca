/* Everything that one rank of a pipeline sends in a step, as a list: one entry for
 * collectives that are alike. Predictions sum it by axis, explanations print it. */
#ifndef MS_SIM_STEP_TRAFFIC_H
#define MS_SIM_STEP_TRAFFIC_H

#include "sim/step/planned.h"

/* Groups in the order of ms_links_spans. */
typedef enum ms_traffic_group {
    MS_TRAFFIC_TP = MS_BILL_TP,
    MS_TRAFFIC_CP = MS_BILL_CP,
    MS_TRAFFIC_EP = MS_BILL_EP,
    MS_TRAFFIC_FSDP = MS_NUM_BILL_AXES + MS_SYNC_FSDP,
    MS_TRAFFIC_EXPERT_FSDP = MS_NUM_BILL_AXES + MS_SYNC_EXPERT_FSDP,
    MS_TRAFFIC_REPLICATE = MS_NUM_BILL_AXES + MS_SYNC_REPLICATE,
    MS_TRAFFIC_ALL = MS_NUM_BILL_AXES + MS_SYNC_ALL,
    MS_TRAFFIC_EXPERT_ALL = MS_NUM_BILL_AXES + MS_SYNC_EXPERT_ALL,
    MS_TRAFFIC_PP,
    MS_TRAFFIC_WORLD,
    MS_NUM_TRAFFIC_GROUPS
} ms_traffic_group;
_Static_assert(MS_NUM_TRAFFIC_GROUPS == MS_NUM_SPANS, "groups are the spans of a plan");

/* When in a step, and so where its time counts. */
typedef enum ms_traffic_phase {
    MS_TRAFFIC_FORWARD,  /* of a part's program */
    MS_TRAFFIC_BACKWARD, /* of a part's program, recomputation included */
    MS_TRAFFIC_STAGE,    /* from stage to stage; waiting for it is the bubble */
    MS_TRAFFIC_PARAMS,   /* parameters on their way to where they are used */
    MS_TRAFFIC_GRADS,    /* gradients on their way to where they are kept */
    /* between the last backward and the update: in optimizer_s, and in no axis of a
     * prediction */
    MS_TRAFFIC_OPTIMIZER,
    MS_NUM_TRAFFIC_PHASES
} ms_traffic_phase;
extern const char *const ms_traffic_phase_names[]; /* "forward" ... */

/* Why a part's collective is there, when no node of its program says so. */
typedef enum ms_traffic_cause {
    MS_CAUSE_NODES, /* placement changes of the program: bill->comms[pass][comm] */
    MS_CAUSE_GATHER_FORWARD,  /* parameters before their use in forward */
    MS_CAUSE_GATHER_BACKWARD, /* and again in backward */
    MS_CAUSE_REDUCE_SCATTER,  /* gradients to their shards */
    MS_CAUSE_ALL_REDUCE,      /* gradients to all replicas */
    MS_CAUSE_REPLICATE,       /* reduced shards over dp_replicate */
    MS_CAUSE_TP_PARTIAL,      /* gradients that every tp rank has of its own tokens */
    MS_CAUSE_SEND_FORWARD,
    MS_CAUSE_SEND_BACKWARD,
    MS_CAUSE_NORM, /* the gradient norm over all ranks */
    MS_CAUSE_TIED, /* gradient of the matrix that embedding and head share */
    /* reduced gradients, to the other copy of a stage that is placed twice */
    MS_CAUSE_REPLICA
} ms_traffic_cause;

typedef struct ms_traffic_entry {
    ms_traffic_phase phase;
    ms_traffic_group group;
    ms_collective collective;
    ms_traffic_cause cause;
    bool has_part; /* else it is the rank's, not of a part */
    ms_held_block part;
    int comm;          /* MS_CAUSE_NODES: index into the bill's list */
    double size_bytes; /* of one collective, as ms_collective_s takes it */
    double wire_bytes; /* that one rank sends for it (ms_collective_wire_bytes) */
    double nic_bytes;  /* of these, over a NIC: ms_algorithm_nic_frac */
    double one_s;
    ms_algorithm algorithm;
    /* above 1: works on what has come while the rest comes (asynchronous TP) */
    int num_chunks;
    double per_part; /* collectives of one part and micro-batch */
    double count;    /* in a step */
    /* of all in a step; of parameters and gradients: ms_traffic_share_exposure */
    double exposed_s;
} ms_traffic_entry;

typedef struct ms_traffic {
    int rank; /* of the pipeline */
    int num_entries;
    ms_traffic_entry *entries;
} ms_traffic;

/* The step of one pipeline rank. Lives in cx->arena. */
ms_traffic ms_traffic_make(ms_ctx *cx, const ms_planned *planned, int rank);

/* Takes what pairs of a forward and a backward hide in a step off the exposure of the
 * exchanges of experts. */
void ms_traffic_hide_pairs(ms_traffic *traffic, double hidden_s);

/* What of the exposed communication of a step (ms_prediction) is not of the programs is
 * of parameters and gradients, shared by their seconds. */
void ms_traffic_share_exposure(ms_traffic *traffic, double exposed_comm_s);

/* For a rank whose exposed parameters and gradients are not known: NaN. */
void ms_traffic_hide_exposure(ms_traffic *traffic);

/* The law of a collective of a group. */
const ms_collective_law *ms_traffic_law(const ms_links *links, ms_traffic_group group,
                                        ms_collective collective);

/* Where parameters and gradients travel, dense or of experts. Experts that lie as
 * everything else does have the same group. */
ms_traffic_group ms_traffic_state_group(const ms_plan *plan, bool expert, bool sharded);

/* The span of a group. */
const ms_span *ms_traffic_span(const ms_planned *planned, ms_traffic_group group);

/* "tp", "cp", "ep"; "dp_shard" ("fsdp" when cp joins it) and "efsdp" for the shards of
 * dense and expert parameters; "dp_replicate"; without shards "dp" ("dp_cp" when cp joins
 * it) for both data-parallel axes flattened, "edp" for those of experts; "pp";
 * "world". */
const char *ms_traffic_group_name(const ms_plan *plan, ms_traffic_group group);

#endif
