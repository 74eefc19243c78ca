/* Chooses how an einsum is spread over each axis of a mesh, with its redistributions and
 * its backward, in the least seconds on a cluster. */
#ifndef MS_COSTMODEL_RESHARD_EINSUM_STRATEGY_H
#define MS_COSTMODEL_RESHARD_EINSUM_STRATEGY_H

#include "costmodel/reshard/einsum_cost.h"
#include "costmodel/reshard/redistribute.h"

typedef struct ms_einsum_problem {
    ms_einsum einsum;
    const ms_mesh *mesh;
    ms_global_tensor inputs[MS_EINSUM_MAX_INPUTS], output;
    ms_spec given[MS_EINSUM_MAX_INPUTS]; /* legal by ms_spec_check */
    const ms_spec *wanted;               /* spec of the output; NULL: as it comes out */
    const ms_pricer *pricer;
    const ms_collective_prices *prices;
    bool is_direct; /* redistributions as in ms_redistribute_task */
} ms_einsum_problem;

/* Fills inputs ("input 1" ...) and output from the einsum; size is indexed by letter. */
void ms_einsum_set_tensors(ms_arena *arena, ms_einsum_problem *problem, const long *size,
                           double element_bytes);

/* A redistribution; without steps if nothing changes, INFINITY seconds if impossible. */
typedef struct ms_einsum_move {
    ms_spec from, to;
    ms_redistribution plan;
} ms_einsum_move;

/* One spread of the einsum, with its redistributions. */
typedef struct ms_einsum_choice {
    ms_spread spread[MS_MAX_AXES];
    ms_einsum_move inputs[MS_EINSUM_MAX_INPUTS]; /* given to needed specs */
    ms_einsum_move output;                       /* resulting to wanted spec */
    double compute_s;                            /* rank with the largest parts */
    double total_s; /* includes all moves, one after the other */
} ms_einsum_choice;

typedef struct ms_einsum_strategy {
    /* some spread takes the given placements: nothing is moved before it */
    bool is_legal;
    ms_einsum_conflict conflict[MS_MAX_AXES]; /* conflict of the given placements */
    bool is_exhaustive; /* every combination of spreads was considered */
    ms_einsum_choice chosen;
    bool has_cheaper; /* legal, but another choice takes less than 0.9 of the seconds */
    ms_einsum_choice cheaper;
} ms_einsum_strategy;

/* Chooses the spreads. Legal placements stay. Otherwise the least total_s over all
 * combinations of spreads: on each axis none, each letter (with factor 1 and those of the
 * inputs), each input that is a partial sum there. With more than 4096 combinations: one
 * axis after the other, outer to inner, the rest unchanged, starting from no spread,
 * until a round improves nothing. Of equal choices (1e-9) the first wins, letters in the
 * order of appearance, so the result is deterministic. Letters are split into equal
 * parts, or as an input already is. During the choice redistributions are direct (there
 * are thousands); those of the result are the cheapest. DTensor decides by the
 * redistribution of the inputs alone; without the product's seconds gathering everything
 * would look as good. False if the output cannot become what is wanted. */
bool ms_einsum_choose(ms_arena *arena, const ms_einsum_problem *problem,
                      ms_einsum_strategy *out);

/* The choice with these spreads, at any cost. False as for ms_einsum_choose. */
bool ms_einsum_price(ms_arena *arena, const ms_einsum_problem *problem,
                     const ms_spread *spread, ms_einsum_choice *out);

/* Sizes of all letters on the rank with the largest parts, under these spreads. */
ms_letter_sizes ms_einsum_local_sizes(const ms_einsum_problem *problem,
                                      const ms_spread *spread);

/* The gradient of one input. */
typedef struct ms_einsum_input_gradient {
    ms_einsum einsum;
    ms_einsum_move move; /* result to needed spec */
    double compute_s;
} ms_einsum_input_gradient;

typedef struct ms_einsum_backward {
    /* redistribution of the output's gradient */
    ms_einsum_move output;
    ms_einsum_input_gradient inputs[MS_EINSUM_MAX_INPUTS];
} ms_einsum_backward;

/* Derives the backward of a choice. Gradients lie as their tensors do, whole for
 * partial ones (ms_gradient_placement). Other inputs enter as in forward: saved, or
 * moved again. */
void ms_einsum_derive_backward(ms_arena *arena, const ms_einsum_problem *problem,
                               const ms_einsum_choice *choice, ms_einsum_backward *out);

#endif
