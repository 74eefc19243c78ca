/* Executes a layer program in fp64 with plain loops on every rank of its mesh, each rank
 * with its own memory, so that a program can be compared with its unsharded version and
 * with finite differences.
 *
 * How the interpreter reads costmodel/program/program.h where several readings are possible:
 * - A rank's part of a tensor is a box: a dim sharded over several axes is split by the
 *   axis of lower index first, by strided ones last. The sequence dim is in stored order;
 *   options.positions gives the position of each stored index.
 * - A REDISTRIBUTE must find every element it needs within the group of its axis; it is
 *   refused otherwise.
 * - Rows tensors ('r') are ragged: a rank holds as many rows as were routed to it. An
 *   EXCHANGE is carried out between the ranks of the ep axis (same edp and etp
 *   coordinates), with the choices of those ranks.
 * - GELU is the exact one (erf). A sigmoid router always renormalises. Ties are won by
 *   the lower expert. NORM subtracts the mean if model->norm is MS_NORM_LAYER, with or
 *   without a bias operand.
 * - The correction bias of a router has no gradient: it only takes part in the choice.
 * - `scores` of unfused attention are the probabilities, zero where masked.
 * - Names of tensors are not unique: weights are the same in two programs if they are the
 *   n-th weight in both.
 * - Dropout masks are all ones.
 * - An activation that is not `saved` cannot be used after the forward nodes unless it is
 *   computed again. */
#ifndef MS_TESTS_SUPPORT_INTERPRETER_H
#define MS_TESTS_SUPPORT_INTERPRETER_H

#include "base/arena.h"
#include "costmodel/program/program.h"

#include <stdint.h>

typedef struct ms_interp_options {
    uint64_t seed;
    const long *positions; /* position of each stored sequence index; NULL: the same */
    /* slot j of token t chooses expert (t * k + j) mod e, t = b * sequence + stored s */
    bool balanced_routing;
    bool forward_only;
    /* 1: one element of a weight or of the input is changed; otherwise 0 */
    int num_nudged;
    int nudged;          /* tensor */
    long nudged_element; /* global index */
    double nudge;        /* added to that element */
} ms_interp_options;

/* What one rank holds of one tensor. */
typedef struct ms_cell {
    int num_dims;
    long shape[MS_MAX_DIMS];
    long count;
    double *values; /* NULL: not computed yet */
} ms_cell;

typedef struct ms_interp {
    const ms_program *program;
    ms_interp_options options;
    ms_arena *arena;
    int num_ranks;
    ms_cell *cells;    /* [tensor * num_ranks + rank] */
    bool *dropped;     /* [tensor] forgotten after the forward nodes */
    double *node_flop; /* [node] executed, summed over ranks; a multiply-add is 2 */
    /* [node * num_ranks + rank] sent, as ms_collective_wire_bytes counts */
    double *node_wire_bytes;
    char why[400]; /* empty: all nodes were executed */
} ms_interp;

/* The n-th weight of a program, in the order of its tensors; -1: there are fewer. */
int ms_interp_weight(const ms_program *program, int n);

/* Runs a program. On failure `why` says which node and what is wrong. Memory comes
 * from the arena. */
ms_interp *ms_interp_run(ms_arena *arena, const ms_program *program,
                         const ms_interp_options *options);

/* The whole tensor, from the parts of all ranks: shards concatenated, partial sums added;
 * copies must agree to 1e-12 of the largest value. NULL with `why` set when that is
 * impossible. */
const double *ms_interp_gather(ms_interp *run, int tensor, long *count);

/* Sum of output * output gradient, or mean loss over tokens when the program has no
 * output gradient. */
double ms_interp_loss(ms_interp *run);

/* Largest |got - want| over largest |want|, or over 0.01 where all of `want` is smaller
 * (gradients that are zero but for rounding, such as that of a key bias). NaN anywhere
 * gives infinity. */
double ms_interp_difference(const double *got, const double *want, long count);

/* Head-tail balance: rank c of `cp` stores chunks c and 2 cp - 1 - c of 2 cp; writes
 * positions[sequence]. */
void ms_interp_positions(long *positions, long sequence, long cp);

#endif
