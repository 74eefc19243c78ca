/* An einsum on a mesh: how it is spread over each axis, what must be moved for that, what
 * comes out, and what training then does in backward. The choice is the least seconds on
 * the given cluster. */
#ifndef MS_COSTMODEL_RESHARD_EINSUM_STRATEGY_H
#define MS_COSTMODEL_RESHARD_EINSUM_STRATEGY_H

#include "costmodel/reshard/einsum_cost.h"
#include "costmodel/reshard/redistribute.h"

typedef struct ms_einsum_problem {
    ms_einsum einsum;
    const ms_mesh *mesh;
    ms_global_tensor inputs[MS_EINSUM_MAX_INPUTS], output;
    ms_spec given[MS_EINSUM_MAX_INPUTS]; /* legal by ms_spec_check */
    const ms_spec *wanted;               /* of the output; NULL: as it comes out */
    const ms_pricer *pricer;
    const ms_collective_prices *prices;
    bool is_direct; /* redistributions as in ms_redistribute_task */
} ms_einsum_problem;

/* Fills inputs and output from the einsum: names "input 1" ..., "output"; size is indexed
 * by the letter. */
void ms_einsum_set_tensors(ms_arena *arena, ms_einsum_problem *problem, const long *size,
                           double element_bytes);

/* A redistribution; without steps when nothing has to be done, INFINITY seconds when
 * there is no way. */
typedef struct ms_einsum_move {
    ms_spec from, to;
    ms_redistribution plan;
} ms_einsum_move;

/* One way to execute it. */
typedef struct ms_einsum_choice {
    ms_spread spread[MS_MAX_AXES];
    /* from what is given to what is needed */
    ms_einsum_move inputs[MS_EINSUM_MAX_INPUTS];
    ms_einsum_move output; /* from what comes out to what is wanted */
    double compute_s;      /* of the rank with the largest parts */
    double total_s;        /* with all moves, one after the other */
} ms_einsum_choice;

typedef struct ms_einsum_strategy {
    /* the given placements are what some spread asks: nothing is moved before the
     * product */
    bool is_legal;
    ms_einsum_conflict conflict[MS_MAX_AXES]; /* of the given placements */
    bool is_exhaustive; /* every combination of spreads was considered */
    ms_einsum_choice chosen;
    /* legal, but another choice takes less than 0.9 times the seconds */
    bool has_cheaper;
    ms_einsum_choice cheaper;
} ms_einsum_strategy;

/* Placements that are legal as they are stay. Otherwise the least total_s over all
 * combinations of spreads: on each axis none at all, each letter (with factor 1 and those
 * of the inputs), each input that is a partial sum there. More than 4096 combinations:
 * one axis after the other, outer to inner, the rest unchanged, starting from no spread
 * at all, until a round improves nothing. Of equal choices (1e-9) the first in this order
 * wins, letters in the order in which they appear; so the result depends on the arguments
 * only. Letters are split into equal parts only, or as an input already is. While
 * choosing, redistributions are direct (there are thousands); those of the result are the
 * cheapest. DTensor decides by the redistribution of the inputs alone; without the
 * seconds of the product gathering everything would look as good. False: there is no way
 * to bring the output to what is wanted. */
bool ms_einsum_choose(ms_arena *arena, const ms_einsum_problem *problem,
                      ms_einsum_strategy *out);

/* The choice with these spreads, one per axis, whatever it costs. False: as above. */
bool ms_einsum_price(ms_arena *arena, const ms_einsum_problem *problem,
                     const ms_spread *spread, ms_einsum_choice *out);

/* Sizes of all letters on the rank with the largest parts, under a choice. */
ms_letter_sizes ms_einsum_local_sizes(const ms_einsum_problem *problem,
                                      const ms_einsum_choice *choice);

/* The gradient of one input. */
typedef struct ms_einsum_input_gradient {
    ms_einsum einsum;
    /* from what the einsum gives to what an optimizer or the producer of the input
     * needs */
    ms_einsum_move move;
    double compute_s;
} ms_einsum_input_gradient;

typedef struct ms_einsum_backward {
    /* of the output's gradient: from what follows the output's last placement to what the
     * rules ask */
    ms_einsum_move output;
    ms_einsum_input_gradient inputs[MS_EINSUM_MAX_INPUTS];
} ms_einsum_backward;

/* Backward of a choice. A tensor's gradient lies as the tensor does, whole where the
 * tensor is partial (ms_gradient_placement). The other inputs enter as in forward: kept,
 * or moved there again. */
void ms_einsum_derive_backward(ms_arena *arena, const ms_einsum_problem *problem,
                               const ms_einsum_choice *choice, ms_einsum_backward *out);

#endif
