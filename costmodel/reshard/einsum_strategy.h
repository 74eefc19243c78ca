/* Chooses how an einsum is sharded over each axis of a mesh, with its redistributions and
 * its backward, for the least seconds on a cluster. */
#ifndef MS_COSTMODEL_RESHARD_EINSUM_STRATEGY_H
#define MS_COSTMODEL_RESHARD_EINSUM_STRATEGY_H

#include "costmodel/reshard/einsum_cost.h"
#include "costmodel/reshard/redistribute.h"

typedef struct ms_einsum_problem {
    ms_einsum einsum;
    const ms_mesh *mesh;
    ms_global_tensor inputs[MS_EINSUM_MAX_INPUTS], output;
    ms_spec given[MS_EINSUM_MAX_INPUTS]; /* legal specs of the inputs (ms_spec_check) */
    const ms_spec *wanted;               /* required placement of the output; NULL: any */
    const ms_pricer *pricer;
    const ms_collective_prices *prices;
    bool is_direct; /* redistributions change only axes that must change */
} ms_einsum_problem;

/* Fills the problem's inputs ("input 1" ...) and output; size is indexed by letter. */
void ms_einsum_set_tensors(ms_arena *arena, ms_einsum_problem *problem, const long *size,
                           double element_bytes);

/* A tensor's redistribution; no steps if it stays, INFINITY seconds if impossible. */
typedef struct ms_einsum_move {
    ms_spec from, to;
    ms_redistribution plan;
} ms_einsum_move;

/* A sharding of the einsum over each axis, with the redistributions that it needs. */
typedef struct ms_einsum_choice {
    ms_spread spread[MS_MAX_AXES];
    /* [input] redistribution from its given spec to the spec needed */
    ms_einsum_move inputs[MS_EINSUM_MAX_INPUTS];
    ms_einsum_move output; /* redistribution from resulting to wanted spec */
    double compute_s;      /* seconds on the rank with the largest parts */
    double total_s;        /* compute_s and all redistributions, in sequence */
} ms_einsum_choice;

typedef struct ms_einsum_strategy {
    /* shardings exist that take the inputs as given, without redistribution */
    bool is_legal;
    ms_einsum_conflict conflict[MS_MAX_AXES]; /* [axis] why the inputs fit no sharding */
    bool is_exhaustive; /* all combinations of shardings were considered */
    ms_einsum_choice chosen;
    bool has_cheaper; /* is_legal, but `cheaper` takes < 0.9 of the time of `chosen` */
    ms_einsum_choice cheaper;
} ms_einsum_strategy;

/* Chooses how an einsum is sharded over each axis. If out->is_legal: as the inputs are
 * given. Otherwise the combination of shardings with the least total_s; on each axis
 * none, any letter (split factor 1 or that of an input) or any input that is a partial
 * sum there. Beyond 4096 combinations: one axis after the other, outer to inner, the rest
 * unchanged, starting from no sharding, until nothing improves. Of choices equal within
 * 1e-9 the first wins (letters in the order of appearance): the result is deterministic.
 * Letters are split into equal parts, or as an input already is. The search compares
 * thousands of redistributions, all direct; the result has the cheapest. DTensor decides
 * by redistribution of the inputs alone; without the product's seconds gathering
 * everything would look as good. False if the output cannot become what is wanted. */
bool ms_einsum_choose(ms_arena *arena, const ms_einsum_problem *problem,
                      ms_einsum_strategy *out);

/* Prices an einsum with these shardings. False if the output cannot become as wanted. */
bool ms_einsum_price(ms_arena *arena, const ms_einsum_problem *problem,
                     const ms_spread *spread, ms_einsum_choice *out);

/* Sizes of all letters on the rank with the largest parts, under these shardings. */
ms_letter_sizes ms_einsum_local_sizes(const ms_einsum_problem *problem,
                                      const ms_spread *spread);

/* The gradient of one input of an einsum. */
typedef struct ms_einsum_input_gradient {
    ms_einsum einsum;
    ms_einsum_move move; /* redistribution from resulting to needed spec */
    double compute_s;
} ms_einsum_input_gradient;

typedef struct ms_einsum_backward {
    ms_einsum_move output; /* redistribution of the output's gradient */
    ms_einsum_input_gradient inputs[MS_EINSUM_MAX_INPUTS];
} ms_einsum_backward;

/* Derives the backward of a sharded einsum. A gradient is placed as its tensor,
 * replicated where that is a partial sum (ms_gradient_placement). The other inputs, which
 * it is computed from, are placed as in forward: saved, or redistributed again. */
void ms_einsum_derive_backward(ms_arena *arena, const ms_einsum_problem *problem,
                               const ms_einsum_choice *choice, ms_einsum_backward *out);

#endif
