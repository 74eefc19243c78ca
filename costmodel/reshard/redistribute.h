/* The cheapest way from one spec (placement) of a tensor to another: a sequence of
 * collectives, each over one axis of the mesh or over several flattened into one.
 *   all-gather      S(d) -> R       size (for ms_collective_s): gathered bytes
 *   reduce-scatter  P -> S(d)       size: bytes before
 *   all-reduce      P -> R          size: local bytes
 *   all-to-all      S(i)->S(j)      size: local bytes
 *   slice           R -> S(d)       local, free
 *   divide          R -> P          local, free: all but one rank hold the
 *                                   neutral element
 *   permute         S -> S in another order: every rank sends its whole part to one other
 * An axis leaves a dim only if it is the last in the dim's split order or in the mesh's,
 * or together with all axes after it. It joins a dim behind the axes there, or as the
 * target has it. S -> P and P -> P' of another reduction do not exist. Uneven parts are
 * padded to the largest; copies within a rank are not priced. Source of the changes and
 * of their sizes: pytorch torch/distributed/tensor/_collective_utils.py
 * (redistribute_cost) and _redistribute.py; flattening and permutations are ours. */
#ifndef MS_COSTMODEL_RESHARD_REDISTRIBUTE_H
#define MS_COSTMODEL_RESHARD_REDISTRIBUTE_H

#include "costmodel/cost/collective_mesh.h"
#include "costmodel/reshard/spec.h"

typedef enum ms_change {
    MS_CHANGE_SLICE,
    MS_CHANGE_DIVIDE,
    MS_CHANGE_ALL_GATHER,
    MS_CHANGE_REDUCE_SCATTER,
    MS_CHANGE_ALL_REDUCE,
    MS_CHANGE_ALL_TO_ALL,
    MS_CHANGE_PERMUTE,
    MS_NUM_CHANGES
} ms_change;
extern const char *const ms_change_names[MS_NUM_CHANGES];

/* Whether a change is free: no rank sends anything. */
bool ms_change_is_local(ms_change change);
/* The collective of a change that is not local; a permute counts as a send. */
ms_collective ms_change_collective(ms_change change);

typedef struct ms_redistribute_step {
    ms_change change;
    ms_axis_set axes; /* axes (of size > 1) whose placements change */
    ms_spec from, to;
    double from_bytes, to_bytes; /* bytes of the largest local part before, after */
    double size_bytes;           /* size for ms_collective_s; 0 for local changes */
    double seconds;
} ms_redistribute_step;

typedef struct ms_redistribution {
    int num_steps;
    ms_redistribute_step *steps;
    double seconds;
    long num_specs; /* number of specs that the search reached */
    /* Whether this is the cheapest sequence that keeps every dim split in an order of
     * axes. False if a search met too many specs; then it is the cheapest direct one or,
     * if too many again, the cheapest in which axes join a dim only as in the target. */
    bool is_optimal;
} ms_redistribution;

typedef struct ms_redistribute_task {
    const ms_mesh *mesh;
    const ms_global_tensor *tensor;
    ms_spec from, to;
    const ms_collective_prices *prices;
    /* Change only the axes that must change. Other sequences may slice along a replicated
     * axis, move less between nodes, and gather inside the node. */
    bool is_direct;
} ms_redistribute_task;

/* Finds the cheapest sequence of changes by uniform-cost search (Dijkstra 1959) over
 * specs; of equally cheap ones that with the fewest steps. Steps live in the arena.
 * False, with a sentence in *why, if there is no sequence. */
bool ms_redistribute(ms_arena *arena, const ms_redistribute_task *task,
                     ms_redistribution *out, const char **why);

/* Size, for ms_collective_s, of one change over these axes; 0 if local. Only mesh and
 * tensor of the task matter. */
double ms_redistribute_step_bytes(const ms_redistribute_task *task, ms_change change,
                                  ms_axis_set axes, const ms_spec *from,
                                  const ms_spec *to);

#endif
