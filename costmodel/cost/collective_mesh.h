/* Interface that prices collectives over sets of mesh axes. */
#ifndef MS_COSTMODEL_COST_COLLECTIVE_MESH_H
#define MS_COSTMODEL_COST_COLLECTIVE_MESH_H

#include "costmodel/cost/collective_cost.h"

/* A set of mesh axes as bits 1 << axis; ranks along several axes form one group. */
typedef unsigned ms_axis_set;

/* Seconds of a collective over a set of mesh axes; size_bytes as for ms_collective_s.
 * INFINITY: the collective does not exist. `data` may be a cache: use from one thread. */
typedef struct ms_collective_prices {
    double (*seconds)(void *data, ms_collective collective, ms_axis_set axes,
                      double size_bytes);
    void *data;
} ms_collective_prices;

long ms_axis_set_ranks(const ms_mesh *mesh, ms_axis_set axes);
/* Name of the innermost network level that holds a whole group of ranks over the axes. */
const char *ms_axis_set_tier(const ms_mesh *mesh, const ms_cluster *cluster,
                             ms_axis_set axes);

/* Prices collectives by ms_collective_law, made on first use. Mesh, cluster and profile
 * must outlive the prices. MS_EINPUT if the profile lacks the cluster's network or the
 * cluster has fewer GPUs than the mesh has ranks. */
ms_status ms_collective_prices_make(ms_ctx *cx, const ms_mesh *mesh,
                                    const ms_cluster *cluster, const ms_profile *profile,
                                    ms_collective_prices *out);

#endif
