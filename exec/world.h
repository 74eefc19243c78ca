/* The ranks of a plan: coordinates, and the groups in which they communicate (those of
 * sim/traffic.h). */
#ifndef MS_EXEC_WORLD_H
#define MS_EXEC_WORLD_H

#include "exec/op_call.h"

/* Where a rank stands. dp = dp_replicate x dp_shard, edp = dp_replicate x efsdp: the first axes of
 * a program's meshes (costmodel/program.h). */
typedef struct ms_place {
    long rank;
    long pp, dp_replicate, dp_shard, cp, tp, dp;
    long efsdp, ep, etp, edp;
} ms_place;

/* A group that contains a rank: its ranks in the order of their coordinates (pp, dp_replicate,
 * dp_shard, cp, tp), whatever the order of axes: sums over a group do not depend on it. */
typedef struct ms_members {
    int size;
    int own;           /* position of the rank among them */
    const long *ranks; /* (size) */
} ms_members;

typedef struct ms_world {
    const ms_plan *plan;
    long num_ranks;
    long dp, cp, tp, edp, ep, etp;              /* sizes of a program's axes */
    const ms_place *places;                     /* (num_ranks) */
    ms_members *members[MS_NUM_TRAFFIC_GROUPS]; /* (num_ranks) each */
} ms_world;

/* The plan is legal (ms_plan_check) and outlives the world. */
ms_world ms_world_make(ms_arena *arena, const ms_plan *plan);

/* The group of sim/traffic.h along which a program's node communicates. */
ms_traffic_group ms_world_group(const ms_node_comm *comm);

/* What a rank holds of a tensor of a program, by its placements: shape and start of each dim.
 * Strided shards (split_factor) split what the other axes left. data is NULL; bytes = count x
 * element_bytes. Rows tensors: as many rows as if all ranks had equally many. Axes that the program
 * was built without (its dp is 1 for pricing) do not split. */
ms_local ms_world_local(const ms_world *world, const ms_program *program, int tensor,
                        const ms_place *place);

#endif
