/* The ranks of a plan: coordinates, and groups for communication (sim/step/traffic.h). */
#ifndef MS_EXEC_CORE_WORLD_H
#define MS_EXEC_CORE_WORLD_H

#include "exec/core/op_call.h"

/* Coordinates of a rank; dp = dp_replicate x dp_shard and edp = dp_replicate x efsdp are
 * the first axes of a program's meshes (costmodel/program/program.h). */
typedef struct ms_place {
    long rank;
    long pp, dp_replicate, dp_shard, cp, tp, dp;
    long efsdp, ep, etp, edp;
} ms_place;

/* A rank's communication group in the order of coordinates (pp, dp_replicate, dp_shard,
 * cp, tp), so that sums do not depend on the plan's order of axes. */
typedef struct ms_members {
    int size;
    int own;           /* index of the rank in the group */
    const long *ranks; /* (size): world ranks */
} ms_members;

typedef struct ms_world {
    const ms_plan *plan;
    long num_ranks;
    long dp, cp, tp, edp, ep, etp;              /* sizes of the axes */
    const ms_place *places;                     /* (num_ranks) */
    ms_members *members[MS_NUM_TRAFFIC_GROUPS]; /* (num_ranks): groups of each rank */
    /* Whether the model's embedding and head are one matrix, whose gradients the first and
     * the last stage exchange. The caller of ms_world_make sets it: plans do not tell. */
    bool ties_embeddings;
} ms_world;

/* Ranks and groups of a plan, which must be legal (ms_plan_check) and outlive them. */
ms_world ms_world_make(ms_arena *arena, const ms_plan *plan);

/* The group (sim/step/traffic.h) over which a layer program's node communicates. */
ms_traffic_group ms_world_group(const ms_node_comm *comm);

/* Shape of a rank's shard of a tensor by its placements; `data` is NULL. Axes with a
 * strided shard (split_factor > 1) split last. Expert rows (MS_DIM_ROWS) are assumed to
 * be evenly distributed. Axes that have size 1 in `program` do not split. */
ms_local ms_world_local(const ms_world *world, const ms_program *program, int tensor,
                        const ms_place *place);

#endif
