/* The part of a torus that a job gets, and how groups of ranks lie on it. Source of the rules: jax-ml/scaling-book tpus.md and sharding.md, and
 * cloud.google.com/tpu/docs (slices are boxes; their sides are joined into rings when the slice is made of whole cubes). */
#ifndef MS_TOPO_TORUS_H
#define MS_TOPO_TORUS_H

#include "topo/mesh.h"

/* A box of chips. Ranks fill it in row-major order, the last dim fastest; dims of the level in ascending order. */
typedef struct ms_torus {
    int num_dims;
    long side[MS_MAX_TORUS_DIMS];
    bool closed[MS_MAX_TORUS_DIMS]; /* the ends of this dim are joined */
} ms_torus;

/* The box for num_gpus ranks in one domain of a torus level: the smallest that holds them; of those equally large one that is closed in all
 * dims, then the most cubic. A dim is closed when all sides are multiples of level->wrap, or when it is as long as the torus. */
ms_torus ms_torus_slice(const ms_level *level, long num_gpus);
long ms_torus_positions(const ms_torus *torus);
/* Coordinates of a position; of its dims only. */
void ms_torus_coordinates(const ms_torus *torus, long position,
                          long coordinate[MS_MAX_TORUS_DIMS]);

/* How the ranks of a group inside one domain, `size` of them, lie on the box. Assumed of groups that do not fill lines evenly (16 along a side of
 * 24): half of one line's wires. */
ms_torus_span ms_torus_span_of(const ms_torus *torus, const ms_group *group, long size);
/* Better than any group of this size in every number: for lower bounds. */
ms_torus_span ms_torus_span_least(const ms_level *level, long size);

#endif
