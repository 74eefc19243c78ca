/* Tensors that lie sharded over all ranks of a mesh in one process: every rank holds its
 * part as an array of doubles. Used to execute placements and redistributions from their
 * definitions. */
#ifndef MS_TESTS_SUPPORT_SHARDED_TENSOR_H
#define MS_TESTS_SUPPORT_SHARDED_TENSOR_H

#include "base/rng.h"
#include "costmodel/reshard/spec.h"

/* What one rank holds. Element (i, j, ...) of the local array is element (index[0][i],
 * index[1][j], ...) of the whole. */
typedef struct ms_shard_part {
    long size[MS_MAX_TENSOR_DIMS];
    long *index[MS_MAX_TENSOR_DIMS];
    long num_elements;
    double *data; /* row-major; NULL when it holds nothing */
} ms_shard_part;

typedef struct ms_sharded_tensor {
    const ms_mesh *mesh;
    const ms_global_tensor *tensor;
    ms_spec spec;
    ms_shard_part *parts; /* one per rank */
} ms_sharded_tensor;

/* Says on stderr what is wrong and ends the program: what is executed is no tensor any
 * more. */
_Noreturn void ms_sharded_tensor_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

long ms_global_tensor_elements(const ms_global_tensor *tensor);

/* Row-major offset in the whole tensor of the element-th of a rank's local array. */
long ms_shard_part_offset(const ms_sharded_tensor *sharded, long rank, long element);
/* For each rank and element of the whole: its place in the rank's local array, -1 when it
 * is not held. */
long **ms_sharded_tensor_where(ms_arena *arena, const ms_sharded_tensor *held);
/* a and b reduced: MS_PARTIAL_SUM (and AVG, before it is divided), MS_PARTIAL_MAX,
 * MS_PARTIAL_MIN. */
double ms_reduce_pair(int kind, double a, double b);

/* Parts of the right shapes, filled with zeros. */
ms_sharded_tensor ms_sharded_tensor_make(ms_arena *arena, const ms_mesh *mesh,
                                         const ms_global_tensor *tensor,
                                         const ms_spec *spec);
/* Cuts a whole tensor. Partial axes: every rank gets a random summand, so that the
 * reduction gives the whole (sum: they add up; avg: their mean; max, min: one of them
 * holds it, the others less or more). Summands are whole numbers, so that sums of whole
 * numbers are exact. rng NULL: the first coordinate holds all of a sum. */
ms_sharded_tensor ms_sharded_tensor_cut(ms_arena *arena, const ms_mesh *mesh,
                                        const ms_global_tensor *tensor,
                                        const ms_spec *spec, const double *whole,
                                        ms_rng *rng);
/* Puts a tensor together again from all its parts: partial values are reduced. Fails when
 * ranks that must agree do not, or an element is held by nobody. */
double *ms_sharded_tensor_gather(ms_arena *arena, const ms_sharded_tensor *sharded);

#endif
