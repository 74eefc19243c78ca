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
    MS_SPMD_REPLICATE, /* equal on all ranks; the gradient is a partial sum */
    MS_SPMD_INVARIANT, /* equal on all ranks, and so is the gradient */
    MS_SPMD_VARYING,   /* differs; so does the gradient */
    MS_SPMD_PARTIAL,   /* to be summed over the ranks; the gradient is replicated */
    MS_NUM_SPMD_TYPES
} ms_spmd_type;
extern const char *const ms_spmd_type_names[MS_NUM_SPMD_TYPES];

typedef enum ms_spmd_primitive {
    MS_SPMD_ALL_GATHER,
    MS_SPMD_ALL_REDUCE,
    MS_SPMD_REDUCE_SCATTER,
    MS_SPMD_ALL_TO_ALL,
    MS_SPMD_CONVERT, /* the same global value under another type, without traffic */
    /* the same local values under another type: another global value */
    MS_SPMD_REINTERPRET,
    MS_NUM_SPMD_PRIMITIVES
} ms_spmd_primitive;
extern const char *const ms_spmd_primitive_names[MS_NUM_SPMD_PRIMITIVES];

/* One row of the table of legality: a change of type that is allowed. */
typedef struct ms_spmd_change {
    ms_spmd_primitive primitive;
    ms_spmd_type from, to;
    /* What a rank does: "slice", "divide", ...; NULL for collectives and where nothing is
     * done. */
    const char *local;
} ms_spmd_change;

/* The row, or NULL when the change is illegal. */
const ms_spmd_change *ms_spmd_find(ms_spmd_primitive primitive, ms_spmd_type from,
                                   ms_spmd_type to);
/* What backward does where forward makes this change: from the gradient type of `to` to
 * the gradient type of `from`. Its own inverse. */
const ms_spmd_change *ms_spmd_backward(const ms_spmd_change *forward);

/* The type of the gradient of a value of this type. */
ms_spmd_type ms_spmd_gradient(ms_spmd_type type);

/* Local type of a placement: Shard varies, Partial(sum) is partial; a replicated value is
 * replicated when its gradient is a partial sum and invariant when its gradient is whole.
 * False for Partial(max), which has no gradient. */
bool ms_spmd_of_placement(ms_placement at, bool gradient_is_partial, ms_spmd_type *type);
/* The change of type that a change of placement is; NULL when no collective can do it:
 * Shard to Partial, Partial(sum) to Partial(max), or nothing to do. A replicated result
 * has type R. Partial(max) counts as partial. */
const ms_spmd_change *ms_spmd_of_redistribution(ms_placement from, ms_placement to);

#endif
