/* The box of a torus that a job gets, and groups of ranks on it. Sources:
 * jax-ml/scaling-book tpus.md and sharding.md, cloud.google.com/tpu/docs (slices are
 * boxes, closed into rings if made of whole cubes). */
#ifndef MS_TOPO_TORUS_H
#define MS_TOPO_TORUS_H

#include "topo/mesh.h"

/* A digit of a rank number: its `size` values step along dimension `dim`. */
typedef struct ms_torus_digit {
    int dim;
    long size;
} ms_torus_digit;

/* Most cuts (rank numbers at which blocks of axes end): those of two meshes. */
#define MS_MAX_TORUS_CUTS (2 * MS_MAX_AXES)
/* Most digits: one per dimension and piece between cuts, and the rest of each side. */
#define MS_MAX_TORUS_DIGITS (MS_MAX_TORUS_DIMS * (MS_MAX_TORUS_CUTS + 1))

/* A box of chips, and where its ranks are. A rank number is in mixed radix, fastest digit
 * first; a digit steps along one dimension, where that dimension's last digit ended. */
typedef struct ms_torus {
    int num_dims;
    long side[MS_MAX_TORUS_DIMS];
    /* whether the ends of the dimension are joined into a ring */
    bool closed[MS_MAX_TORUS_DIMS];
    int num_digits;
    ms_torus_digit digit[MS_MAX_TORUS_DIGITS];
} ms_torus;

/* The smallest box for num_gpus ranks in a torus domain; of equal ones a closed, then the
 * most cubic one. A dimension is closed if all sides are multiples of level->wrap or it
 * is as long as the torus. Ranks fill it in row-major order. */
ms_torus ms_torus_slice(const ms_level *level, long num_gpus);

/* Adds strides and extents of a mesh's axes to ascending `cuts`; returns the count. */
int ms_torus_add_cuts(const ms_mesh *mesh, long cuts[MS_MAX_TORUS_CUTS], int num_cuts);
/* Arranges ranks so that those between two cuts fill a block of chips, innermost first:
 * whole sides if possible, over many dimensions rather than few; else the block with most
 * links. Cuts where no block can end are skipped. Source: jax/experimental/mesh_utils.py,
 * create_device_mesh with allow_split_physical_axes. */
void ms_torus_arrange(ms_torus *torus, const long *cuts, int num_cuts);
/* The box of chips of a job, its ranks arranged for all axes of the mesh together. */
ms_torus ms_torus_of_mesh(const ms_level *level, const ms_mesh *mesh);

/* Number of positions in the box; it is at least the number of ranks. */
long ms_torus_positions(const ms_torus *torus);
/* Coordinates [num_dims] of a position in row-major order. */
void ms_torus_coordinates(const ms_torus *torus, long position,
                          long coordinate[MS_MAX_TORUS_DIMS]);
/* The coordinates of a rank of a domain, and the rank at given coordinates. */
void ms_torus_locate(const ms_torus *torus, long rank,
                     long coordinate[MS_MAX_TORUS_DIMS]);
long ms_torus_rank_at(const ms_torus *torus, const long coordinate[MS_MAX_TORUS_DIMS]);

/* The span of `size` ranks of a group in a domain. If they fill no block (16 on a side of
 * 24): that of a ring in rank order whose busiest link has twice the mean load. */
ms_torus_span ms_torus_span_of(const ms_torus *torus, const ms_group *group, long size);
/* ms_group_span on a torus arranged for all groups of a job; `torus` NULL: none. */
ms_span ms_group_span_on(const ms_group *group, long num_ranks, const ms_cluster *cluster,
                         const ms_torus *torus);
/* A span at least as good as that of any `size` ranks, for lower bounds of times. */
ms_torus_span ms_torus_span_least(const ms_level *level, long size);

#endif
