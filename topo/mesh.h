/* Folder topo: clusters, meshes of ranks and the links between them; not what is sent
 * over them, nor how long it takes.
 *
 * A device mesh: named axes over ranks 0 .. num_ranks-1, the last varying fastest. A
 * collective along axes runs in every group of ranks that agree on all other coordinates.
 * A span tells how many ranks of a group share a domain of each network level. */
#ifndef MS_TOPO_MESH_H
#define MS_TOPO_MESH_H

#include "topo/cluster.h"
#include "topo/layout.h"

#define MS_MAX_AXES 8

typedef struct ms_mesh_axis {
    const char *name;
    long size;
    long stride; /* distance in ranks between neighbours along the axis */
} ms_mesh_axis;

/* A mesh; the product of its sizes is num_ranks. */
typedef struct ms_mesh {
    int num_axes;
    long num_ranks;
    ms_mesh_axis axes[MS_MAX_AXES]; /* axes, outer to inner */
} ms_mesh;

/* Makes a mesh of axes, outer to inner, with sizes >= 1. Names are not copied. */
ms_mesh ms_mesh_make(const char *const *names, const long *sizes, int num_axes);
/* Index of an axis by name; -1 if absent. */
int ms_mesh_find(const ms_mesh *mesh, const char *name);

/* The group with rank 0 along one or several flattened axes, as modes from outer to
 * inner, without modes of size 1 or that continue each other. */
typedef struct ms_group {
    long size;
    int num_modes;
    ms_mode modes[MS_MAX_AXES];
} ms_group;

/* The group over the axes with the given indices, in mesh order. */
ms_group ms_mesh_group(const ms_mesh *mesh, const int *axes, int num_axes);
/* Writes the ranks of a rank's group into out[group.size] by coordinate. */
void ms_mesh_group_ranks(const ms_mesh *mesh, const ms_group *group, long rank,
                         long *out);

/* How a group lies on a torus when all groups of its axis communicate at once. Source:
 * jax-ml/scaling-book sharding.md and tpus.md. */
typedef struct ms_torus_span {
    /* links of a rank, summed over torus dimensions: 2 (ring) or 1 (line), divided by the
     * number of groups that share the links */
    double links;
    /* links from end to end, over all dimensions: half of each ring, each whole line */
    double hops;
    /* all-to-all: bytes on the busiest link per byte that a rank sends, the largest of
     * side / 8 over rings and side / 4 over lines */
    double cut;
    long step; /* largest number of links from one rank of the group to the next */
} ms_torus_span;

bool ms_torus_span_equal(const ms_torus_span *a, const ms_torus_span *b);

/* How the ranks of a group spread over the domains of each network level. A domain of G
 * GPUs with p ranks of a group serves G/p groups. Source: jax-ml/scaling-book gpus.md. */
typedef struct ms_span {
    long size;
    int num_levels;
    /* [level] ranks of a group in a domain; if uneven: group size divided by the largest
     * number of domains that a group touches, rounded up */
    long per_domain[MS_MAX_LEVELS];
    /* Fewest ranks of any group in one of several innermost domains that it touches: the
     * NICs over which its ring leaves there. 0: as per_domain[0]. */
    long narrowest;
    int tier; /* innermost level of which one domain holds a group; index */
    /* Level at which a group's rings and trees meet, if beyond `tier`, since ranks that
     * follow each other are on different rails; 0: `tier`. All-to-alls and sends change
     * rails inside a domain (PXN). */
    int ring_tier;
    ms_torus_span torus; /* span on a torus, if the innermost level is one */
} ms_span;

/* Ranks, where fewest, over whose NICs a group leaves a domain. */
static inline long ms_span_nic_ranks(const ms_span *span)
{
    return span->narrowest > 0 ? span->narrowest : span->per_domain[0];
}

/* The span of a group and its copies along the mesh; if they differ (domains of 72 GPUs),
 * of the one that touches most domains. A torus is arranged for this group alone. */
ms_span ms_group_span(const ms_group *group, long num_ranks, const ms_cluster *cluster);

#endif
