/* Local types of values in SPMD programs, one per mesh axis: what a rank holds compared
 * with the others of its group, and what its gradient is. They decide which operations
 * are legal and which collective backward each forward collective implies, so that the
 * traffic of a step follows from its forward pass alone.
 *
 * Sources: JAX shard_map, "varying manual axes" (jax docs/notebooks/shard_map.md: varying
 * and invariant values, psum, pvary and their transposes); DTensor placements (pytorch
 * torch/distributed/tensor/placement_types.py, _redistribute.py); the conjugate operators
 * f and g of Shoeybi et al. 2019 (section 3), and of Korthikanti et al. 2022 (section
 * 4.2.2) for sequence parallelism. */
#ifndef MS_COSTMODEL_TENSOR_SPMD_H
#define MS_COSTMODEL_TENSOR_SPMD_H

#include "costmodel/tensor/placement.h"

typedef enum ms_spmd_type {
    MS_SPMD_REPLICATE, /* value equal on all ranks; its gradient a partial sum */
    MS_SPMD_INVARIANT, /* value and gradient are each equal on all ranks */
    MS_SPMD_VARYING,   /* value and gradient each differ from rank to rank */
    MS_SPMD_PARTIAL,   /* summand of a sum over ranks; its gradient is replicated */
    MS_NUM_SPMD_TYPES
} ms_spmd_type;
extern const char *const ms_spmd_type_names[MS_NUM_SPMD_TYPES];

typedef enum ms_spmd_primitive {
    MS_SPMD_ALL_GATHER,
    MS_SPMD_ALL_REDUCE,
    MS_SPMD_REDUCE_SCATTER,
    MS_SPMD_ALL_TO_ALL,
    MS_SPMD_CONVERT,     /* changes the type, not the global value; no traffic */
    MS_SPMD_REINTERPRET, /* type and global value change, local values do not */
    MS_NUM_SPMD_PRIMITIVES
} ms_spmd_primitive;
extern const char *const ms_spmd_primitive_names[MS_NUM_SPMD_PRIMITIVES];

/* One legal change of a value's type, by a primitive. */
typedef struct ms_spmd_change {
    ms_spmd_primitive primitive;
    ms_spmd_type from, to;
    const char *local; /* operation on each rank: "slice", "divide"; NULL: none */
} ms_spmd_change;

/* Finds the legal change of type by a primitive; NULL: there is none. */
const ms_spmd_change *ms_spmd_find(ms_spmd_primitive primitive, ms_spmd_type from,
                                   ms_spmd_type to);
/* The change of the gradient's type in backward of `forward`: from the gradient type of
 * forward->to to that of forward->from. The backward of a backward is the forward. */
const ms_spmd_change *ms_spmd_backward(const ms_spmd_change *forward);

/* The type of the gradient of a value of this type. */
ms_spmd_type ms_spmd_gradient(ms_spmd_type type);

/* Type of a value by its placement: Shard varies, Partial(sum) is partial; Replicate is
 * replicated if its gradient is a partial sum, and invariant if its gradient is whole.
 * False for Partial(max, min, avg), which have no gradient. */
bool ms_spmd_of_placement(ms_placement at, bool gradient_is_partial, ms_spmd_type *type);
/* Change of type by a redistribution from -> to; NULL if the placements are equal or no
 * collective does it (Shard to Partial, Partial(sum) to Partial(max)). Replicate in `to`
 * has type replicate, not invariant; any Partial has type partial. */
const ms_spmd_change *ms_spmd_of_redistribution(ms_placement from, ms_placement to);

#endif
