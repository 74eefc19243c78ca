/* The mesh zoo: names that axes have in training frameworks, what an axis of each name
 * splits and which collectives run along it, the compositions that are in use, and the
 * axes derived from others. Sources: E. Z. Yang, "The Parallelism Mesh Zoo"
 * (blog.ezyang.com, 2025); pytorch/torchtitan torchtitan/distributed/parallel_dims.py in
 * its states of July 2025 to April 2026; JAX's "batch" and "model"; verl's "sp". */
#ifndef MS_TOPO_MESH_ZOO_H
#define MS_TOPO_MESH_ZOO_H

#include "base/diag.h"
#include "topo/mesh.h"

/* What an axis is for. */
typedef enum ms_axis_role {
    MS_AXIS_OTHER, /* no name of the zoo */
    MS_AXIS_PP,
    MS_AXIS_DP,
    MS_AXIS_DP_REPLICATE,
    MS_AXIS_DP_SHARD,
    MS_AXIS_DP_SHARD_MOD_EP, /* dp_shard in two, so that one mesh serves experts too */
    MS_AXIS_DP_SHARD_IN_EP,
    MS_AXIS_CP,
    MS_AXIS_SP, /* Ulysses */
    MS_AXIS_TP,
    MS_AXIS_EFSDP,
    MS_AXIS_EP,
    MS_AXIS_ETP,
    MS_NUM_AXIS_ROLES
} ms_axis_role;

/* The name of a role; NULL for MS_AXIS_OTHER. */
const char *ms_axis_role_name(ms_axis_role role);
/* By name or alias ("ddp", "fsdp", "shard", "replicate", "model", "ulysses", ...); '-'
 * counts as '_'. MS_AXIS_OTHER: none. "dp" and its aliases are MS_AXIS_DP: what it stands
 * for depends on the other axes (ms_mesh_roles). */
ms_axis_role ms_axis_role_find(const char *name);
/* The nearest name or alias, or NULL. */
const char *ms_axis_role_nearest(const char *name);

/* Choices that are no axes, but decide what runs along them. */
typedef struct ms_zoo_choices {
    long zero; /* 0..3; -1: 3 for dp_shard and its aliases, 0 for dp and its */
    bool sequence_parallel;
    long ep, etp;      /* 1: none */
    int ep_generation; /* 1..3, see topo/mesh_derive.h */
} ms_zoo_choices;

/* Roles of the axes of a mesh: beside a dp_shard, "dp" replicates; beside a dp_replicate
 * it shards. MS_EINPUT when two axes have one role, or dp_shard stands beside its two
 * parts. */
ms_status ms_mesh_roles(ms_ctx *cx, const ms_mesh *mesh, ms_axis_role roles[MS_MAX_AXES]);
/* Index of the axis with a role, -1 when absent. */
int ms_mesh_find_role(const ms_mesh *mesh, const ms_axis_role *roles, ms_axis_role role);

/* ---- compositions ---- */

typedef struct ms_zoo_row {
    int row;           /* 1..15; 0: a composition without a row of its own */
    const char *name;  /* "HSDP + TP"; of a row: what it is called */
    const char *mesh;  /* its axes, outer to inner */
    const char *order; /* why in this order */
} ms_zoo_row;

#define MS_NUM_ZOO_ROWS 15
/* Row 1 first. */
extern const ms_zoo_row ms_zoo_rows[MS_NUM_ZOO_ROWS];

/* What a mesh is: the name of its parts joined, "PP + HSDP + TP", and the row of the zoo
 * that it belongs to. Axes of size 1 do not count. */
ms_zoo_row ms_mesh_strategy(ms_arena *arena, const ms_mesh *mesh,
                            const ms_axis_role *roles, const ms_zoo_choices *choices);

/* How much of the parameters' states is sharded, 0..3 as --zero: of the choices; by the
 * names of the axes when they leave it open; 0 with nothing to shard over. */
long ms_mesh_zero(const ms_mesh *mesh, const ms_axis_role *roles,
                  const ms_zoo_choices *choices);

/* What an axis of a role splits, and the collectives along it; "" where there are
 * none. */
typedef struct ms_axis_use {
    const char *splits, *forward, *backward, *step, *place;
} ms_axis_use;
ms_axis_use ms_axis_use_of(const ms_mesh *mesh, const ms_axis_role *roles,
                           ms_axis_role role, const ms_zoo_choices *choices);

#endif
