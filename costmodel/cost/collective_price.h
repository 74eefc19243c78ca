/* Prices of collectives over the axes of one mesh: one interface, so that a plan of
 * collectives can be made for the laws of a cluster and, in tests, for those of another
 * system. */
#ifndef MS_COSTMODEL_COST_COLLECTIVE_PRICE_H
#define MS_COSTMODEL_COST_COLLECTIVE_PRICE_H

#include "costmodel/cost/collective_cost.h"

/* Axes of a mesh as a set of bits; several are one flattened axis. */
typedef unsigned ms_axis_set;

/* Seconds of a collective over a set of axes; size_bytes as ms_collective_s takes it.
 * INFINITY: the system has no such collective. `data` may remember what it has worked
 * out: one thread at a time. */
typedef struct ms_collective_prices {
    double (*seconds)(void *data, ms_collective collective, ms_axis_set axes,
                      double size_bytes);
    void *data;
} ms_collective_prices;

/* Ranks of a set of axes. */
long ms_axis_set_ranks(const ms_mesh *mesh, ms_axis_set axes);
/* Name of the innermost level of the cluster that holds a group over them. */
const char *ms_axis_set_tier(const ms_mesh *mesh, const ms_cluster *cluster,
                             ms_axis_set axes);

/* ms_collective_law of each group on a cluster, resolved when first asked for. Mesh,
 * cluster and profile must live as long. Errors: MS_EINPUT, the profile lacks the
 * cluster's network or the cluster has fewer GPUs than the mesh has ranks. */
ms_status ms_collective_prices_make(ms_ctx *cx, const ms_mesh *mesh,
                                    const ms_cluster *cluster, const ms_profile *profile,
                                    ms_collective_prices *out);

#endif
