/* The collectives of a plan on the cluster: one law per group and collective, resolved
 * once per mesh and axis order. */
#ifndef MS_SIM_STEP_LINKS_H
#define MS_SIM_STEP_LINKS_H

#include "costmodel/cost/collective_cost.h"
#include "sim/step/workload.h"
#include "topo/torus.h"

/* Groups along which gradients and parameters travel. */
typedef enum ms_sync_group {
    MS_SYNC_FSDP,        /* dp_shard x cp */
    MS_SYNC_EXPERT_FSDP, /* efsdp = dp_shard x cp x tp / (ep x etp) */
    MS_SYNC_REPLICATE,   /* dp_replicate */
    MS_SYNC_ALL,         /* dp_replicate x dp_shard x cp */
    MS_SYNC_EXPERT_ALL,  /* dp_replicate x efsdp */
    MS_NUM_SYNC_GROUPS
} ms_sync_group;

typedef struct ms_links {
    bool alone; /* a relaxation: no link is shared with another group */
    ms_span span[MS_NUM_BILL_AXES];
    /* those a bill can hold */
    ms_collective_law law[MS_NUM_BILL_AXES][MS_NUM_COLLECTIVES];
    ms_span sync_span[MS_NUM_SYNC_GROUPS];
    ms_collective_law gather[MS_NUM_SYNC_GROUPS], reduce[MS_NUM_SYNC_GROUPS],
        all_reduce[MS_NUM_SYNC_GROUPS];
    ms_span pipeline_span, world_span;
    ms_collective_law send;  /* between neighbouring stages */
    ms_collective_law world; /* all-reduce over all ranks: the gradient norm */
} ms_links;

/* Laws of a plan's groups in its axis order. The plan need not be the workload's own. */
ms_links ms_links_make(const ms_workload *workload, const ms_plan *plan);

/* A relaxation: every group as if it lay alone, innermost on the cluster. No order of
 * axes is faster. */
ms_links ms_links_ideal(const ms_workload *workload, const ms_plan *plan);

#define MS_NUM_SPANS (MS_NUM_BILL_AXES + MS_NUM_SYNC_GROUPS + 2)

/* The groups that a plan communicates in, as modes over its ranks: tp, cp, ep, those of
 * ms_sync_group, pp and all ranks. */
typedef struct ms_plan_groups {
    ms_mesh mesh; /* the dense one */
    ms_group group[MS_NUM_SPANS];
} ms_plan_groups;
ms_plan_groups ms_plan_groups_of(const ms_plan *plan);

/* The box of chips that the plan gets on a torus, its ranks arranged for both of its
 * meshes. */
ms_torus ms_plan_torus(const ms_plan *plan, const ms_cluster *cluster);

/* Spans of all groups of a plan, in a canonical order: orders of axes with equal spans
 * cost the same. */
void ms_links_spans(const ms_plan *plan, const ms_cluster *cluster,
                    ms_span spans[MS_NUM_SPANS]);

#endif
