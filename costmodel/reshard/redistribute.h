/* The cheapest way from one spec of a tensor to another: a sequence of collectives, each
 * over one axis of the mesh or over several flattened into one.
 *
 *   all-gather      S(d) -> R       S = gathered bytes
 *   reduce-scatter  P -> S(d)       S = bytes before
 *   all-reduce      P -> R          S = local bytes
 *   all-to-all      S(i)->S(j)      S = local bytes
 *   slice           R -> S(d)       local, free
 *   divide          R -> P          local, free: all but one rank hold the
 *                                   neutral element
 *   permute         S -> S in another order: every rank sends its whole part to one other
 *
 * An axis leaves a dim only if no axis splits the dim after it, by their order or by that
 * of the mesh, or if these leave with it. It joins a dim behind the axes that are there,
 * or as the target has it. S -> P and P -> P' of another reduction do not exist. Uneven
 * parts are padded to the largest; copies within a rank are not priced. Source of the
 * changes and of their sizes: pytorch torch/distributed/tensor/_collective_utils.py
 * (redistribute_cost) and _redistribute.py; flattening and permutations are ours. */
#ifndef MS_COSTMODEL_RESHARD_REDISTRIBUTE_H
#define MS_COSTMODEL_RESHARD_REDISTRIBUTE_H

#include "costmodel/cost/collective_price.h"
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
/* "slice", "divide", "all-gather" ... */
extern const char *const ms_change_names[MS_NUM_CHANGES];

/* Whether a change is free: no rank sends anything. */
bool ms_change_is_local(ms_change change);
/* The collective that carries it out; a permute is a send. Not for local changes. */
ms_collective ms_change_collective(ms_change change);

typedef struct ms_redistribute_step {
    ms_change change;
    ms_axis_set axes; /* of size > 1 */
    ms_spec from, to;
    double from_bytes, to_bytes; /* of the largest local part */
    double size_bytes;           /* as ms_collective_s takes it; 0 for local changes */
    double seconds;
} ms_redistribute_step;

typedef struct ms_redistribution {
    int num_steps;
    ms_redistribute_step *steps;
    double seconds;
    long num_specs; /* placements that were looked at */
    /* No sequence of these changes is cheaper that keeps every dim split in an order of
     * axes on its way. False: there were too many placements to look at. The plan is then
     * the cheapest direct one, or where these are too many too, the cheapest in which
     * axes join a dim only as the target has them. */
    bool is_optimal;
} ms_redistribution;

typedef struct ms_redistribute_task {
    const ms_mesh *mesh;
    const ms_global_tensor *tensor;
    ms_spec from, to;
    const ms_collective_prices *prices;
    /* Leave alone the axes that need not change. Otherwise a plan may pass over them:
     * slice along an axis that replicates, move an eighth of the bytes between nodes, and
     * gather inside the node. */
    bool is_direct;
} ms_redistribute_task;

/* False when there is no way, with a sentence in *why. The steps lie in the arena.
 * Uniform-cost search (Dijkstra 1959) over specs; of equally cheap ways the one with
 * fewest steps. */
bool ms_redistribute(ms_arena *arena, const ms_redistribute_task *task,
                     ms_redistribution *out, const char **why);

/* S of one change over these axes, as the table above has it; 0 for local changes. Of the
 * task only mesh and tensor are read. */
double ms_redistribute_step_bytes(const ms_redistribute_task *task, ms_change change,
                                  ms_axis_set axes, const ms_spec *from,
                                  const ms_spec *to);

#endif
