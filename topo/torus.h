/* The part of a torus that a job gets, and how groups of ranks lie on it. Source of the
 * rules: jax-ml/scaling-book tpus.md and sharding.md, and cloud.google.com/tpu/docs
 * (slices are boxes; their sides are joined into rings when the slice is made of whole
 * cubes). */
#ifndef MS_TOPO_TORUS_H
#define MS_TOPO_TORUS_H

#include "topo/mesh.h"

/* `size` steps of ranks along one dim. */
typedef struct ms_torus_digit {
    int dim;
    long size;
} ms_torus_digit;

/* Boundaries between the axes of meshes: two meshes of MS_MAX_AXES. */
#define MS_MAX_TORUS_CUTS (2 * MS_MAX_AXES)
/* A digit per dim for each piece between cuts, and what is left of each side. */
#define MS_MAX_TORUS_DIGITS (MS_MAX_TORUS_DIMS * (MS_MAX_TORUS_CUTS + 1))

/* A box of chips, dims of the level in ascending order. A rank is a number in mixed radix
 * whose digits are steps along dims: the first digit is the fastest, and of digits of one
 * dim each goes on where the one before it ends. */
typedef struct ms_torus {
    int num_dims;
    long side[MS_MAX_TORUS_DIMS];
    bool closed[MS_MAX_TORUS_DIMS]; /* the ends of this dim are joined */
    int num_digits;
    ms_torus_digit digit[MS_MAX_TORUS_DIGITS];
} ms_torus;

/* The box for num_gpus ranks in one domain of a torus level: the smallest that holds
 * them; of those equally large one that is closed in all dims, then the most cubic. A dim
 * is closed when all sides are multiples of level->wrap, or when it is as long as the
 * torus. Ranks fill it in row-major order, the last dim fastest. */
ms_torus ms_torus_slice(const ms_level *level, long num_gpus);

/* The numbers of ranks at which groups of the mesh begin or end, added to those that are
 * there. Returns how many there are then. */
int ms_torus_add_cuts(const ms_mesh *mesh, long cuts[MS_MAX_TORUS_CUTS], int num_cuts);
/* Lets ranks fill the box so that those between two cuts are blocks of it. From the
 * innermost piece outwards each takes whole sides if there are some whose product it is,
 * of more dims first, else the parts of sides with the most wires. Source:
 * jax/experimental/mesh_utils.py create_device_mesh, with allow_split_physical_axes. Cuts
 * that no block ends at are left out, later ones give way to earlier. */
void ms_torus_arrange(ms_torus *torus, const long *cuts, int num_cuts);
/* The box of a job, arranged for a mesh; for all axes of it alike. */
ms_torus ms_torus_of_mesh(const ms_level *level, const ms_mesh *mesh);

long ms_torus_positions(const ms_torus *torus);
/* Coordinates of a position, which count the box row by row; of its dims only. */
void ms_torus_coordinates(const ms_torus *torus, long position,
                          long coordinate[MS_MAX_TORUS_DIMS]);
/* Where a rank of a domain lies, and which rank lies there. */
void ms_torus_locate(const ms_torus *torus, long rank,
                     long coordinate[MS_MAX_TORUS_DIMS]);
long ms_torus_rank_at(const ms_torus *torus, const long coordinate[MS_MAX_TORUS_DIMS]);

/* How the ranks of a group inside one domain, `size` of them, lie on the box. Those that
 * fill no block (16 along a side of 24) are a ring in the order of the ranks over the
 * shortest ways; assumed: its busiest wire carries twice what wires of its dim carry
 * on average. */
ms_torus_span ms_torus_span_of(const ms_torus *torus, const ms_group *group, long size);
/* ms_group_span for one of several groups on a torus that is arranged for all of them;
 * NULL where there is none. */
ms_span ms_group_span_on(const ms_group *group, long num_ranks, const ms_cluster *cluster,
                         const ms_torus *torus);
/* Better than any group of this size in every number: for lower bounds. */
ms_torus_span ms_torus_span_least(const ms_level *level, long size);

#endif
