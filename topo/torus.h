/* The box of a torus that a job gets, and how groups of ranks lie on it. Sources of the
 * rules: jax-ml/scaling-book tpus.md and sharding.md, and cloud.google.com/tpu/docs
 * (slices are boxes; their sides are closed into rings if the slice is made of whole
 * cubes). */
#ifndef MS_TOPO_TORUS_H
#define MS_TOPO_TORUS_H

#include "topo/mesh.h"

/* One digit of a rank: `size` values, each a step along one dimension. */
typedef struct ms_torus_digit {
    int dim;
    long size;
} ms_torus_digit;

/* Limit of the cuts, the numbers of ranks at which axes of a mesh start or end: those
 * of two meshes of MS_MAX_AXES. */
#define MS_MAX_TORUS_CUTS (2 * MS_MAX_AXES)
/* Limit of the digits: one per dimension for each piece between cuts, and one for the
 * remainder of each side. */
#define MS_MAX_TORUS_DIGITS (MS_MAX_TORUS_DIMS * (MS_MAX_TORUS_CUTS + 1))

/* A box of chips with an arrangement of ranks, dimensions in the order of the level. A
 * rank is a number in mixed radix whose digits are steps along dimensions: the first
 * digit is the fastest, and each further digit of a dimension continues where the one
 * before it ends. */
typedef struct ms_torus {
    int num_dims;
    long side[MS_MAX_TORUS_DIMS];
    /* whether the ends of the dimension are joined into a ring */
    bool closed[MS_MAX_TORUS_DIMS];
    int num_digits;
    ms_torus_digit digit[MS_MAX_TORUS_DIGITS];
} ms_torus;

/* The box for num_gpus ranks in one domain of a torus level: the smallest that holds
 * them; among equally large ones one that is closed in all dimensions, then the most
 * cubic. A dimension is closed if all sides are multiples of level->wrap, or if it is
 * as long as the torus. Ranks fill the box in row-major order, the last dimension
 * fastest. */
ms_torus ms_torus_slice(const ms_level *level, long num_gpus);

/* Adds the cuts of a mesh, the strides and extents of its axes, to `cuts`, an ascending
 * list in which each divides the next. Returns the new number of cuts. */
int ms_torus_add_cuts(const ms_mesh *mesh, long cuts[MS_MAX_TORUS_CUTS], int num_cuts);
/* Arranges the ranks of a box so that the ranks between two cuts form blocks. From the
 * innermost piece outwards, each takes whole sides if the product of some equals its
 * size, with more dimensions first; otherwise parts of the sides with the most links. A
 * cut at which no block can end is skipped, and a later cut yields to earlier ones.
 * Source: jax/experimental/mesh_utils.py, create_device_mesh with
 * allow_split_physical_axes. */
void ms_torus_arrange(ms_torus *torus, const long *cuts, int num_cuts);
/* The box of a job, arranged for all axes of its mesh together. */
ms_torus ms_torus_of_mesh(const ms_level *level, const ms_mesh *mesh);

/* Number of positions in the box; it is at least the number of ranks. */
long ms_torus_positions(const ms_torus *torus);
/* The coordinates of a position; positions number the box row by row. Only the first
 * num_dims coordinates are set. */
void ms_torus_coordinates(const ms_torus *torus, long position,
                          long coordinate[MS_MAX_TORUS_DIMS]);
/* The coordinates of a rank of a domain, and the rank at given coordinates. */
void ms_torus_locate(const ms_torus *torus, long rank,
                     long coordinate[MS_MAX_TORUS_DIMS]);
long ms_torus_rank_at(const ms_torus *torus, const long coordinate[MS_MAX_TORUS_DIMS]);

/* The span on the box of a group with `size` ranks in one domain. Ranks that fill no
 * block evenly (16 along a side of 24) are taken as a ring in rank order over shortest
 * paths; its busiest link is assumed to carry twice the average of the links of its
 * dimension. */
ms_torus_span ms_torus_span_of(const ms_torus *torus, const ms_group *group, long size);
/* ms_group_span on a torus that is arranged for all groups of a job; NULL if the
 * innermost level is no torus. */
ms_span ms_group_span_on(const ms_group *group, long num_ranks, const ms_cluster *cluster,
                         const ms_torus *torus);
/* A span at least as favourable in every member as that of any group of this size, for
 * lower bounds of times. */
ms_torus_span ms_torus_span_least(const ms_level *level, long size);

#endif
