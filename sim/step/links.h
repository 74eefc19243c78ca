/* Cost laws of a plan's collectives on the cluster, one per group and collective, made once
 * per mesh and axis order. */
#ifndef MS_SIM_STEP_LINKS_H
#define MS_SIM_STEP_LINKS_H

#include "costmodel/cost/collective_cost.h"
#include "sim/step/workload.h"
#include "topo/torus.h"

/* Groups over which gradients are reduced and parameters gathered. */
typedef enum ms_sync_group {
    MS_SYNC_FSDP,        /* sharding group of dense parameters: dp_shard x cp */
    MS_SYNC_EXPERT_FSDP, /* efsdp = dp_shard x cp x tp / (ep x etp) */
    MS_SYNC_REPLICATE,   /* replicas of shards: dp_replicate */
    MS_SYNC_ALL,         /* dp_replicate x dp_shard x cp */
    MS_SYNC_EXPERT_ALL,  /* dp_replicate x efsdp */
    MS_NUM_SYNC_GROUPS
} ms_sync_group;

typedef struct ms_links {
    bool alone; /* relaxation: each group has its links to itself */
    ms_span span[MS_NUM_BILL_AXES];
    ms_collective_law law[MS_NUM_BILL_AXES][MS_NUM_COLLECTIVES]; /* cost laws by axis */
    ms_span sync_span[MS_NUM_SYNC_GROUPS];
    ms_collective_law gather[MS_NUM_SYNC_GROUPS], reduce[MS_NUM_SYNC_GROUPS],
        all_reduce[MS_NUM_SYNC_GROUPS];
    ms_span pipeline_span, world_span;
    ms_collective_law send;  /* cost law: sends between neighbouring stages */
    ms_collective_law world; /* cost law: all-reduce over all ranks (gradient norm) */
} ms_links;

/* Cost laws of a plan's groups in its axis order; any plan, not only the workload's. */
ms_links ms_links_make(const ms_workload *workload, const ms_plan *plan);

/* A relaxation: every group as if it lay alone, innermost on the cluster. No order of
 * axes is faster. */
ms_links ms_links_ideal(const ms_workload *workload, const ms_plan *plan);

#define MS_NUM_SPANS (MS_NUM_BILL_AXES + MS_NUM_SYNC_GROUPS + 2)

/* A plan's groups as modes over its ranks: tp, cp, ep, those of ms_sync_group, pp, and all
 * ranks. */
typedef struct ms_plan_groups {
    ms_mesh mesh; /* mesh of the dense (non-expert) parameters */
    ms_group group[MS_NUM_SPANS];
} ms_plan_groups;
ms_plan_groups ms_plan_groups_of(const ms_plan *plan);

/* The plan's box of chips on a torus, with its ranks arranged for both of its meshes. */
ms_torus ms_plan_torus(const ms_plan *plan, const ms_cluster *cluster);

/* Spans of all groups of a plan, in the order of ms_plan_groups. Orders of axes with equal
 * spans have equal costs. */
void ms_links_spans(const ms_plan *plan, const ms_cluster *cluster,
                    ms_span spans[MS_NUM_SPANS]);

#endif
