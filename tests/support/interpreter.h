/* Reference interpreter: executes a layer program in fp64 with plain loops on every rank
 * of its mesh, each with its own memory, for comparison with the unsharded program and
 * with finite differences.
 *
 * Details of program semantics that costmodel/program/program.h leaves open:
 * - A rank's part of a tensor is a box: a dim sharded over several axes is split by the
 *   axis of lower index first, by strided ones last. The sequence dim is in stored order;
 *   options.positions gives the position of each stored index.
 * - A REDISTRIBUTE must find every element it needs within the group of its axis;
 *   otherwise it is refused.
 * - Tensors of rows ('r') are ragged: a rank holds as many rows as are routed to it. An
 *   EXCHANGE is executed between the ranks of the ep axis (same edp and etp coordinates),
 *   with the choices of those ranks.
 * - GELU is exact (erf). A sigmoid router always renormalises. The lower expert wins
 *   ties. NORM subtracts the mean if model->norm is MS_NORM_LAYER, with or without a bias
 *   operand.
 * - A router's correction bias has no gradient: it only takes part in the choice.
 * - `scores` of unfused attention are the probabilities, zero where masked.
 * - Names of tensors are not unique: two programs have the same weight where it is the
 *   n-th weight of both.
 * - Dropout masks are all ones.
 * - An activation that is not `saved` cannot be used after the forward nodes unless it
 *   is recomputed. */
#ifndef MS_TESTS_SUPPORT_INTERPRETER_H
#define MS_TESTS_SUPPORT_INTERPRETER_H

#include "base/arena.h"
#include "costmodel/program/program.h"

#include <stdint.h>

typedef struct ms_interp_options {
    uint64_t seed;
    /* position of each stored sequence index; NULL: position = index */
    const long *positions;
    /* slot j of token t chooses expert (t * k + j) mod e, with t = batch index * sequence
     * length + stored index, top-k routing and e experts */
    bool balanced_routing;
    bool forward_only;
    /* 1: one element of a weight or of the input is changed (nudged); 0: none */
    int num_nudged;
    int nudged;          /* tensor of the nudged element */
    long nudged_element; /* global index of the nudged element */
    double nudge;        /* added to the nudged element */
} ms_interp_options;

/* One rank's part of one tensor. */
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
    ms_cell *cells;    /* indexed by tensor * num_ranks + rank */
    bool *dropped;     /* whether a tensor is not saved for backward */
    double *node_flop; /* [node]: executed FLOP, summed over ranks; a multiply-add is 2 */
    /* [node * num_ranks + rank]: bytes sent, as ms_collective_wire_bytes counts */
    double *node_wire_bytes;
    char why[400]; /* why the run failed; empty: all nodes were executed */
} ms_interp;

/* The n-th weight of a program, in the order of its tensors; -1: it has fewer. */
int ms_interp_weight(const ms_program *program, int n);

/* Runs a program, in memory of the arena. On failure `why` names the node and the
 * error. */
ms_interp *ms_interp_run(ms_arena *arena, const ms_program *program,
                         const ms_interp_options *options);

/* A whole tensor from the parts of all ranks: shards are joined, partial sums added;
 * replicas must agree to 1e-12 of the largest value. NULL, with `why` set: impossible. */
const double *ms_interp_gather(ms_interp *run, int tensor, long *count);

/* Sum of output * output gradient; the mean loss over tokens if the program has no output
 * gradient. */
double ms_interp_loss(ms_interp *run);

/* Largest |got - want| relative to the largest |want|, or to 0.01 if that is smaller
 * (gradients that are zero but for rounding, such as a key bias's). Infinity: a value is
 * NaN. */
double ms_interp_difference(const double *got, const double *want, long count);

/* Writes positions[sequence] of a head-tail balanced sequence: of 2 cp chunks, rank c of
 * `cp` stores chunks c and 2 cp - 1 - c. */
void ms_interp_positions(long *positions, long sequence, long cp);

#endif
