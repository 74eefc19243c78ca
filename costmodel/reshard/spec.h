/* Folder costmodel/reshard: specs, redistributions and einsums of tensors on any mesh,
 * outside of layer programs.
 *
 * A spec says how a tensor of any dims lies on a mesh of any named axes: one placement
 * per axis. Placements are read outer to inner as successive splits: each Shard cuts what
 * the axes before it have left, so that a rank holds a list of indices along every dim.
 * For tensors outside of layer programs: specs, redistributions and einsums on any mesh.
 * Source: DTensor, pytorch torch/distributed/tensor/placement_types.py (Shard,
 * _StridedShard, Partial). Two notations: mesh-oriented, a placement per axis, S(b)@dp
 * S(f)@tp (DTensor); tensor-oriented, axes per dim, major first, P("dp",("tp","cp"))
 * (JAX, jax/_src/partition_spec.py). Neither expresses all of the other:
 * ms_spec_partition_text and ms_spec_needs_strided report what is lost. */
#ifndef MS_COSTMODEL_RESHARD_SPEC_H
#define MS_COSTMODEL_RESHARD_SPEC_H

#include "base/diag.h"
#include "costmodel/tensor/placement.h"
#include "topo/mesh.h"

#define MS_MAX_TENSOR_DIMS 8

/* A tensor's dims by letter, with their global sizes. */
typedef struct ms_global_tensor {
    const char *name;
    int num_dims;
    char dims[MS_MAX_TENSOR_DIMS + 1]; /* letters, outermost first */
    long size[MS_MAX_TENSOR_DIMS];     /* global size of each dim, >= 1 */
    double element_bytes;
} ms_global_tensor;

/* Placement of a tensor per mesh axis; {0}: replicated everywhere. */
typedef struct ms_spec {
    ms_placement at[MS_MAX_AXES];
} ms_spec;

bool ms_placement_splits(ms_placement at, char letter);

/* Position of a letter among the tensor's dims; -1 if absent. */
int ms_global_tensor_dim(const ms_global_tensor *tensor, char letter);

bool ms_spec_equal(const ms_mesh *mesh, const ms_spec *a, const ms_spec *b);
/* Whether a spec is legal: axes shard dims that the tensor has, factors are not negative,
 * and partial axes have one kind of reduction (a maximum of sums is no sum of maxima; sum
 * and average commute). If not, *why is a sentence in the arena. */
bool ms_spec_check(ms_arena *arena, const ms_mesh *mesh, const ms_global_tensor *tensor,
                   const ms_spec *spec, const char **why);

/* ---- local parts ---- */

typedef struct ms_range {
    long start, length; /* indices [start, start + length), length > 0 */
} ms_range;

/* A set of indices along one dim as ascending ranges that do not touch; may be empty. */
typedef struct ms_ranges {
    int num_ranges;
    ms_range *ranges;
} ms_ranges;

long ms_ranges_length(ms_ranges ranges);

/* Global indices of dim `dim` (a position) that `rank` holds, in storage order. */
ms_ranges ms_spec_ranges(ms_arena *arena, const ms_mesh *mesh, const ms_spec *spec,
                         const ms_global_tensor *tensor, int dim, long rank);
/* Size of each dim in the largest part of any rank, to which collectives pad. */
void ms_spec_largest_size(const ms_mesh *mesh, const ms_spec *spec,
                          const ms_global_tensor *tensor, long *size);
/* Bytes of the largest part of a tensor on any rank. */
double ms_spec_local_bytes(const ms_mesh *mesh, const ms_spec *spec,
                           const ms_global_tensor *tensor);
/* Whether the axes that split a dim divide it into equal parts. */
bool ms_spec_is_even(const ms_mesh *mesh, const ms_spec *spec,
                     const ms_global_tensor *tensor, int dim);

/* ---- order of the axes that split a dim ---- */

/* Indices of axes, major to minor: the first cuts a dim into the longest ranges. */
typedef struct ms_axis_order {
    int num_axes;
    int axes[MS_MAX_AXES];
} ms_axis_order;

/* Finds the order in which axes split a dim. An axis whose split factor is the product of
 * the sizes of axes after it in the mesh splits after these. False if a factor is no such
 * product: then no order is equivalent. If the axes do not divide the dim, this order may
 * give other ranks the shorter parts than the spec does. */
bool ms_spec_order(const ms_mesh *mesh, const ms_spec *spec, char letter,
                   ms_axis_order *out);
/* Shards dim `letter` over these axes in this order, with split factors where the order
 * is not the mesh's; other axes are unchanged. */
void ms_spec_set_order(const ms_mesh *mesh, ms_spec *spec, char letter,
                       const ms_axis_order *order);

/* ---- notations ---- */

/* Text of a spec without replicated axes, "S(b)@dp SS(f,2)@cp P(max)@tp"; or "R". */
const char *ms_spec_text(ms_arena *arena, const ms_mesh *mesh, const ms_spec *spec);
/* Text of a spec as a JAX PartitionSpec, "P(("tp","dp"),None)". NULL and a sentence in
 * *why if it cannot express the spec: partial values, factors that are no order, and dims
 * that several axes do not divide (PartitionSpec tiles are equal). */
const char *ms_spec_partition_text(ms_arena *arena, const ms_mesh *mesh,
                                   const ms_global_tensor *tensor, const ms_spec *spec,
                                   const char **why);
/* Why placements without split factors cannot express a spec; NULL: they can. */
const char *ms_spec_needs_strided(ms_arena *arena, const ms_mesh *mesh,
                                  const ms_spec *spec);

/* Reads a spec in either notation; MS_EINPUT if neither. Mesh-oriented: R, S(dim),
 * SS(dim,factor), P, P(sum|avg|max|min), each with @axis, separated by blanks or commas,
 * or one per axis in a bracketed list, "[R, S(0)]"; a dim is its letter or position.
 * Tensor-oriented: P(...) with quoted axis names, tuples of them and None (default). */
ms_status ms_spec_read(ms_ctx *cx, const char *text, const ms_mesh *mesh,
                       const ms_global_tensor *tensor, ms_spec *out);

#endif
