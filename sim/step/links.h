/* Cost formulas (seconds by bytes) of a plan's collectives on the cluster, one per
 * communication group and collective. */
#ifndef MS_SIM_STEP_LINKS_H
#define MS_SIM_STEP_LINKS_H

#include "costmodel/cost/collective_cost.h"
#include "sim/step/workload.h"
#include "topo/torus.h"

/* Communication groups over which gradients are reduced and parameters gathered. */
typedef enum ms_sync_group {
    MS_SYNC_FSDP,        /* shards of dense parameters: dp_shard x cp */
    MS_SYNC_EXPERT_FSDP, /* shards of experts: dp_shard x cp x tp / (ep x etp) */
    MS_SYNC_REPLICATE,   /* ranks with equal shards: dp_replicate */
    MS_SYNC_ALL,         /* all data-parallel ranks: dp_replicate x dp_shard x cp */
    MS_SYNC_EXPERT_ALL,  /* all ranks with the same experts: dp_replicate x efsdp */
    /* ranks that shard a copy of the parameters between forward and backward, the inner
     * ones of MS_SYNC_FSDP and of MS_SYNC_EXPERT_FSDP (ms_plan_secondary_shards); only
     * gathered over. Without such a copy groups of one rank */
    MS_SYNC_SECONDARY,
    MS_SYNC_EXPERT_SECONDARY,
    MS_NUM_SYNC_GROUPS
} ms_sync_group;

typedef struct ms_links {
    bool alone; /* ideal, for bounds: no two groups share a link */
    ms_span span[MS_NUM_BILL_AXES];
    /* cost formulas: [mesh axis][collective in the group of that axis] */
    ms_collective_law law[MS_NUM_BILL_AXES][MS_NUM_COLLECTIVES];
    bool has_secondary; /* backward gathers over the secondary groups */
    ms_span sync_span[MS_NUM_SYNC_GROUPS];
    ms_collective_law gather[MS_NUM_SYNC_GROUPS], reduce[MS_NUM_SYNC_GROUPS],
        all_reduce[MS_NUM_SYNC_GROUPS];
    ms_span pipeline_span, world_span;
    ms_collective_law send;  /* cost formula: sends between neighbouring stages */
    ms_collective_law world; /* cost formula: all-reduce over all ranks (gradient norm) */
} ms_links;

/* Makes the cost formulas of a plan, in its order of axes, on the workload's cluster. */
ms_links ms_links_make(const ms_workload *workload, const ms_plan *plan);

/* Ideal cost formulas for lower bounds: every group has the best place on the cluster,
 * and shares its links with no other group. No order of the plan's axes is faster. */
ms_links ms_links_ideal(const ms_workload *workload, const ms_plan *plan);

#define MS_NUM_SPANS (MS_NUM_BILL_AXES + MS_NUM_SYNC_GROUPS + 2)

/* The plan's communication groups, each as sets of ranks: tp, cp, ep, those of
 * ms_sync_group, pp, and all ranks. */
typedef struct ms_plan_groups {
    ms_mesh mesh; /* mesh of the dense (non-expert) parameters */
    ms_group group[MS_NUM_SPANS];
} ms_plan_groups;
ms_plan_groups ms_plan_groups_of(const ms_plan *plan);

/* The part of an innermost domain, a torus, for a plan's ranks, arranged to suit the axes
 * of the plan's meshes for dense and for expert parameters. */
ms_torus ms_plan_torus(const ms_plan *plan, const ms_cluster *cluster);

/* Fills how each of the plan's groups maps to the network levels, in the order of
 * ms_plan_groups. Two orders of the plan's axes with equal spans have equal costs. */
void ms_links_spans(const ms_plan *plan, const ms_cluster *cluster,
                    ms_span spans[MS_NUM_SPANS]);

#endif
