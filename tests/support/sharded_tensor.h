/* A tensor sharded over all ranks of a mesh, within one process: each rank holds its part
 * as an array of doubles. Used to execute placements and redistributions by their
 * definitions. */
#ifndef MS_TESTS_SUPPORT_SHARDED_TENSOR_H
#define MS_TESTS_SUPPORT_SHARDED_TENSOR_H

#include "base/rng.h"
#include "costmodel/reshard/spec.h"

/* One rank's part of a tensor: element (i, j, ...) of the part is element (index[0][i],
 * index[1][j], ...) of the whole tensor. */
typedef struct ms_shard_part {
    long size[MS_MAX_TENSOR_DIMS];
    long *index[MS_MAX_TENSOR_DIMS];
    long num_elements;
    double *data; /* row-major; NULL: no elements */
} ms_shard_part;

typedef struct ms_sharded_tensor {
    const ms_mesh *mesh;
    const ms_global_tensor *tensor;
    ms_spec spec;
    ms_shard_part *parts; /* one part per rank */
} ms_sharded_tensor;

/* Prints an error to stderr and ends the program: used where the ranks' parts do not form
 * a tensor. */
_Noreturn void ms_sharded_tensor_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

long ms_global_tensor_elements(const ms_global_tensor *tensor);

/* Row-major offset in the whole tensor of element `element` of a rank's part. */
long ms_shard_part_offset(const ms_sharded_tensor *sharded, long rank, long element);
/* For each rank and element of the whole tensor: its index in the rank's part, -1: not
 * held. */
long **ms_sharded_tensor_where(ms_arena *arena, const ms_sharded_tensor *held);
/* Reduces two numbers by MS_PARTIAL_SUM, MS_PARTIAL_AVG (not yet divided), MS_PARTIAL_MAX
 * or MS_PARTIAL_MIN. */
double ms_reduce_pair(int kind, double a, double b);

/* Makes a sharded tensor of zeros. */
ms_sharded_tensor ms_sharded_tensor_make(ms_arena *arena, const ms_mesh *mesh,
                                         const ms_global_tensor *tensor,
                                         const ms_spec *spec);
/* Cuts a whole tensor into parts. On partial axes each rank gets random values that
 * reduce to the whole (sum: they add up; avg: their mean; max, min: one of them has the
 * value, the others less or more); they are whole numbers, so that sums of whole numbers
 * are exact. rng NULL: the first coordinate holds all of a sum. */
ms_sharded_tensor ms_sharded_tensor_cut(ms_arena *arena, const ms_mesh *mesh,
                                        const ms_global_tensor *tensor,
                                        const ms_spec *spec, const double *whole,
                                        ms_rng *rng);
/* Puts a whole tensor together from its parts, reducing partial values. Fails if replicas
 * differ, or an element is held by no rank. */
double *ms_sharded_tensor_gather(ms_arena *arena, const ms_sharded_tensor *sharded);

#endif
