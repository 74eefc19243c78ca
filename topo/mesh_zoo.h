/* The mesh zoo: names of mesh axes in frameworks, what they split, the collectives along
 * them, and combinations in use. Sources: E. Z. Yang, "The Parallelism Mesh Zoo"
 * (blog.ezyang.com, 2025); pytorch/torchtitan torchtitan/distributed/parallel_dims.py
 * from July 2025 to April 2026; JAX's "batch" and "model"; verl's "sp". */
#ifndef MS_TOPO_MESH_ZOO_H
#define MS_TOPO_MESH_ZOO_H

#include "base/diag.h"
#include "topo/mesh.h"

/* The role of an axis: the kind of parallelism that runs along it. */
typedef enum ms_axis_role {
    MS_AXIS_OTHER, /* a name outside the zoo */
    MS_AXIS_PP,
    MS_AXIS_DP,
    MS_AXIS_DP_REPLICATE,
    MS_AXIS_DP_SHARD,
    /* outer part of dp_shard, outside ep (one mesh for all layers) */
    MS_AXIS_DP_SHARD_MOD_EP,
    MS_AXIS_DP_SHARD_IN_EP, /* inner part of dp_shard, inside ep */
    MS_AXIS_CP,
    MS_AXIS_SP, /* sequence parallelism of DeepSpeed-Ulysses */
    MS_AXIS_TP,
    MS_AXIS_EFSDP,
    MS_AXIS_EP,
    MS_AXIS_ETP,
    MS_NUM_AXIS_ROLES
} ms_axis_role;

/* The name of a role; NULL for MS_AXIS_OTHER. */
const char *ms_axis_role_name(ms_axis_role role);
/* The role of a name or alias ("fsdp", "model", "ulysses", ...); '-' is '_'.
 * MS_AXIS_OTHER if none; MS_AXIS_DP depends on other axes (ms_mesh_roles). */
ms_axis_role ms_axis_role_find(const char *name);
/* The name or alias nearest to `name` by edit distance; NULL if none is near. */
const char *ms_axis_role_nearest(const char *name);

/* Choices apart from the axes that determine which collectives run along them. */
typedef struct ms_zoo_choices {
    /* ZeRO stage 0..3; -1: 3 if an axis is named dp_shard or an alias of it, else 0 */
    long zero;
    bool sequence_parallel;
    long ep, etp;      /* sizes of expert and expert-tensor parallelism; 1: none */
    int ep_generation; /* TorchTitan's rule for ep: 1 (7/2025), 2 (8/2025), 3 (12/2025) */
} ms_zoo_choices;

/* Roles of a mesh's axes: "dp" replicates beside dp_shard and shards beside dp_replicate.
 * MS_EINPUT if two axes have one role, or dp_shard stands beside a part of it. */
ms_status ms_mesh_roles(ms_ctx *cx, const ms_mesh *mesh, ms_axis_role roles[MS_MAX_AXES]);
/* Index of the axis with a role; -1 if absent. */
int ms_mesh_find_role(const ms_mesh *mesh, const ms_axis_role *roles, ms_axis_role role);

/* ---- compositions ---- */

/* A row of ms_zoo_rows: one combination of mesh axes. */
typedef struct ms_zoo_row {
    int row;           /* row number 1..15 in ms_zoo_rows; 0: not in that table */
    const char *name;  /* name of the combination, "HSDP + TP" */
    const char *mesh;  /* axes of the combination, outer to inner */
    const char *order; /* reason for this order of axes */
} ms_zoo_row;

#define MS_NUM_ZOO_ROWS 15
extern const ms_zoo_row ms_zoo_rows[MS_NUM_ZOO_ROWS];

/* The strategy's name, "PP + HSDP + TP", and row of ms_zoo_rows; axes of size 1 are left
 * out. */
ms_zoo_row ms_mesh_strategy(ms_arena *arena, const ms_mesh *mesh,
                            const ms_axis_role *roles, const ms_zoo_choices *choices);

/* ZeRO stage 0..3 of the choices or by the names of axes; 0 without an axis to shard. */
long ms_mesh_zero(const ms_mesh *mesh, const ms_axis_role *roles,
                  const ms_zoo_choices *choices);

/* Use of an axis: what it splits; the collectives along it in forward, in backward and at
 * a step's end; the cluster level where it belongs. "": none. */
typedef struct ms_axis_use {
    const char *splits, *forward, *backward, *step, *place;
} ms_axis_use;
ms_axis_use ms_axis_use_of(const ms_mesh *mesh, const ms_axis_role *roles,
                           ms_axis_role role, const ms_zoo_choices *choices);

#endif
