#include "costmodel/tensor/spmd.h"

#include <stddef.h>

const char *const ms_spmd_type_names[] = {"replicate", "invariant", "varying", "partial"};
_Static_assert(sizeof ms_spmd_type_names / sizeof *ms_spmd_type_names ==
                   MS_NUM_SPMD_TYPES,
               "every type has a name");

const char *const ms_spmd_primitive_names[] = {
    "all-gather", "all-reduce", "reduce-scatter", "all-to-all", "convert", "reinterpret",
};
_Static_assert(sizeof ms_spmd_primitive_names / sizeof *ms_spmd_primitive_names ==
                   MS_NUM_SPMD_PRIMITIVES,
               "every primitive has a name");

#define R MS_SPMD_REPLICATE
#define I MS_SPMD_INVARIANT
#define V MS_SPMD_VARYING
#define P MS_SPMD_PARTIAL

static const ms_spmd_change changes[] = {
    {MS_SPMD_ALL_GATHER, V, R, NULL},
    {MS_SPMD_ALL_GATHER, V, I, NULL},
    {MS_SPMD_ALL_REDUCE, P, R, NULL},
    {MS_SPMD_ALL_REDUCE, P, I, NULL},
    {MS_SPMD_REDUCE_SCATTER, P, V, NULL},
    {MS_SPMD_ALL_TO_ALL, V, V, NULL},
    {MS_SPMD_CONVERT, I, R, NULL},
    {MS_SPMD_CONVERT, I, V, "slice"},
    {MS_SPMD_CONVERT, R, V, "slice"},
    {MS_SPMD_CONVERT, R, P, "divide"},
    {MS_SPMD_CONVERT, V, P, "pad with zeros"},
    {MS_SPMD_REINTERPRET, R, V, NULL},
    {MS_SPMD_REINTERPRET, V, P, NULL},
};
#define NUM_CHANGES ((int)(sizeof changes / sizeof *changes))

/* [row of `changes`] primitive of the backward of that forward change. */
static const ms_spmd_primitive backward_of[] = {
    MS_SPMD_REDUCE_SCATTER, /* backward of varying to replicate: reduces the gradient */
    MS_SPMD_CONVERT,        /* backward of varying to invariant: slices the gradient */
    MS_SPMD_ALL_REDUCE,     /* backward of partial to replicate */
    MS_SPMD_CONVERT,        /* backward of partial to invariant: Megatron's g */
    MS_SPMD_ALL_GATHER,     /* backward of partial to varying */
    MS_SPMD_ALL_TO_ALL,     /* backward of varying to varying: dims swapped back */
    MS_SPMD_ALL_REDUCE,     /* backward of invariant to replicate: Megatron's f */
    MS_SPMD_ALL_GATHER,     /* backward of invariant to varying */
    MS_SPMD_CONVERT,        /* backward of replicate to varying (slice) */
    MS_SPMD_CONVERT,        /* backward of replicate to partial (divide) */
    MS_SPMD_CONVERT,        /* backward of varying to partial (zeros) */
    MS_SPMD_REINTERPRET,    /* backward of replicate to varying (no change) */
    MS_SPMD_REINTERPRET,    /* backward of varying to partial (no change) */
};
_Static_assert(sizeof backward_of / sizeof *backward_of ==
                   sizeof changes / sizeof *changes,
               "every change has a backward");

const ms_spmd_change *ms_spmd_find(ms_spmd_primitive primitive, ms_spmd_type from,
                                   ms_spmd_type to)
{
    for (int i = 0; i < NUM_CHANGES; i++)
        if (changes[i].primitive == primitive && changes[i].from == from &&
            changes[i].to == to)
            return &changes[i];
    return NULL;
}

ms_spmd_type ms_spmd_gradient(ms_spmd_type type)
{
    static const ms_spmd_type gradients[] = {P, I, V, R};
    return gradients[type];
}

const ms_spmd_change *ms_spmd_backward(const ms_spmd_change *forward)
{
    return ms_spmd_find(backward_of[forward - changes], ms_spmd_gradient(forward->to),
                        ms_spmd_gradient(forward->from));
}

bool ms_spmd_of_placement(ms_placement at, bool gradient_is_partial, ms_spmd_type *type)
{
    switch ((ms_placement_kind)at.kind) {
    case MS_SHARD:
        *type = V;
        return true;
    case MS_PARTIAL_SUM:
        *type = P;
        return true;
    case MS_REPLICATE:
        *type = gradient_is_partial ? R : I;
        return true;
    case MS_PARTIAL_MAX:
    case MS_PARTIAL_MIN:
    case MS_PARTIAL_AVG:
    case MS_NUM_PLACEMENTS:
        break;
    }
    return false;
}

const ms_spmd_change *ms_spmd_of_redistribution(ms_placement from, ms_placement to)
{
    bool partial = ms_placement_is_partial(from);
    if (ms_placement_equal(from, to) ||
        (ms_placement_is_partial(to) && to.kind != MS_PARTIAL_SUM))
        return NULL;
    if (to.kind == MS_PARTIAL_SUM)
        return from.kind == MS_REPLICATE ? ms_spmd_find(MS_SPMD_CONVERT, R, P) : NULL;
    if (to.kind == MS_REPLICATE)
        return partial ? ms_spmd_find(MS_SPMD_ALL_REDUCE, P, R)
                       : ms_spmd_find(MS_SPMD_ALL_GATHER, V, R);
    if (partial)
        return ms_spmd_find(MS_SPMD_REDUCE_SCATTER, P, V);
    return from.kind == MS_SHARD ? ms_spmd_find(MS_SPMD_ALL_TO_ALL, V, V)
                                 : ms_spmd_find(MS_SPMD_CONVERT, R, V);
}
