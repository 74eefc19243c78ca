/* Chooses which forward results of a layer to save in a byte budget, for the least
 * recomputation; as PyTorch's `activation_memory_budget`, checkmate (Jain et al.
 * 2020). */
#ifndef MS_COSTMODEL_COST_SAVED_CHOICE_H
#define MS_COSTMODEL_COST_SAVED_CHOICE_H

#include "costmodel/cost/kernel_cost.h"
#include "costmodel/program/program.h"

typedef struct ms_saved_prices {
    const ms_pricer *pricer;
    double bytes_per_s; /* rate of repeated collectives; INFINITY: free */
} ms_saved_prices;

/* A choice: saves those results of the nodes in `keep` that backward reads. */
typedef struct ms_saved_point {
    double bytes;   /* saved per rank and micro-batch, besides the layer's input */
    double seconds; /* seconds to recompute the other results, except repeated gathers */
    ms_saved keep;
} ms_saved_point;

/* Pareto front of saved bytes (ascending) and recompute seconds. The first point saves
 * nothing (full recomputation), the last recomputes nothing that takes time. */
typedef struct ms_saved_front {
    int num_points;
    const ms_saved_point *points;
    ms_saved_point all; /* the choice that saves everything */
} ms_saved_front;

/* Makes the Pareto front of saved bytes and recompute seconds for a layer program built
 * without recomputation. Exact for the sum of node times: a node runs again, once, if one
 * of its results is needed and not saved; then its inputs are needed too. Decides forward
 * nodes from the last to the first; of choices that need the same results next, only
 * those undominated in bytes and seconds remain. Lives in the arena. */
ms_saved_front ms_saved_front_make(ms_arena *arena, const ms_program *program,
                                   const ms_saved_prices *prices);

/* The fastest choice within `budget_frac` of the bytes of `all`; `all` if it is >= 1. */
const ms_saved_point *ms_saved_choose(const ms_saved_front *front, double budget_frac);

#endif
