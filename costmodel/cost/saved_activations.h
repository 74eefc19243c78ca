/* What of a layer to keep from forward to backward under a budget of bytes: of all sets
 * of forward results the ones that are computed again in the least time, as PyTorch's
 * `activation_memory_budget` and checkmate (Jain et al. 2020) choose. */
#ifndef MS_COSTMODEL_COST_SAVED_ACTIVATIONS_H
#define MS_COSTMODEL_COST_SAVED_ACTIVATIONS_H

#include "costmodel/cost/kernel_cost.h"
#include "costmodel/program/program.h"

typedef struct ms_saved_prices {
    const ms_pricer *pricer;
    /* of collectives that run again: a rate, since bills know no links; INFINITY: they
     * cost nothing */
    double bytes_per_s;
} ms_saved_prices;

/* One choice: results of the nodes of `keep` that backward needs. */
typedef struct ms_saved_point {
    double bytes; /* kept beyond the layer's input, on one rank and of one micro-batch */
    /* to compute the rest again, without what is gathered again in any case (regather) */
    double seconds;
    ms_saved keep;
} ms_saved_point;

/* All choices that no other beats in both bytes and seconds: bytes ascend, seconds
 * descend. The first keeps nothing (full recomputation), the last computes nothing that
 * takes time again. */
typedef struct ms_saved_front {
    int num_points;
    const ms_saved_point *points;
    ms_saved_point all; /* what no recomputation keeps */
} ms_saved_front;

/* The front of a layer's program that was made without recomputation. Exact for the sum
 * of node times: a node runs again when a result of it is asked for and not kept, once,
 * and then asks for its own inputs. Walks the forward nodes from the last to the first;
 * what differs between choices so far is their bytes, seconds and the results asked for
 * that lie further in front, so that of equal such results only choices remain that no
 * other beats. Lives in the arena. */
ms_saved_front ms_saved_front_make(ms_arena *arena, const ms_program *program,
                                   const ms_saved_prices *prices);

/* The choice that takes least time with at most `budget_frac` of the bytes that no
 * recomputation keeps; from 1 on it keeps all of them. */
const ms_saved_point *ms_saved_choose(const ms_saved_front *front, double budget_frac);

#endif
