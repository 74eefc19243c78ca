/* The parts of the checker of layer programs: check.c runs them. Each reports what it
 * finds and goes on. */
#ifndef MS_COSTMODEL_PROGRAM_PROGRAM_CHECK_PRIV_H
#define MS_COSTMODEL_PROGRAM_PROGRAM_CHECK_PRIV_H

#include "costmodel/program/program_check.h"

typedef struct ms_checker {
    const ms_program *program;
    ms_arena *arena; /* for one check */
    ms_check_finding *findings;
    int capacity, num_findings;
    /* [tensor] the tensor of the forward pass (or gradient) that this one is another
     * placement or a recomputed copy of */
    int *root;
    /* [tensor] the gradient that its maker takes in backward, else one that a user of it
     * gives; -1: none */
    int *gradient;
} ms_checker;

/* `axis` is that of the mesh of the node's first operand, -1: none. */
void ms_checker_report(ms_checker *c, ms_check_kind kind, int node, int axis,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Of a tensor that no node makes. */
void ms_checker_report_tensor(ms_checker *c, ms_check_kind kind, int tensor, int axis,
                              const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static inline const ms_tensor *ms_checker_in(const ms_checker *c, const ms_node *node,
                                             int operand)
{
    return &c->program->tensors[node->in[operand]];
}

static inline const ms_tensor *ms_checker_out(const ms_checker *c, const ms_node *node,
                                              int result)
{
    return &c->program->tensors[node->out[result]];
}

/* Whether placements on the axis mean anything. An axis of one rank means nothing, except
 * axis 0: programs are priced with one rank there. */
bool ms_checker_is_active(const ms_program *program, int mesh, int axis);

typedef struct ms_placement_words {
    char text[48];
} ms_placement_words;
/* "split by s", "a partial sum", ... */
ms_placement_words ms_checker_describe(ms_placement at);

/* Reports on which axes the tensor is still a partial sum, and on which it was reduced.
 * `node`: where it is used, -1: nowhere. */
void ms_checker_require_whole(ms_checker *c, int tensor, int node, const char *what);

/* ---- the parts; `n` is a node ---- */

/* program_check_types.c: dims and placements of operands and results, by the table of
 * operations. */
void ms_check_operation(ms_checker *c, int n);
/* program_check_moves.c: nodes that move data, and the order of rows. */
void ms_check_redistribution(ms_checker *c, int n);
void ms_check_exchange(ms_checker *c, int n);
void ms_check_rows(ms_checker *c);
/* program_check_backward.c: recomputed and backward nodes against forward ones, gradients,
 * updates. */
void ms_check_backward(ms_checker *c);
void ms_check_updates(ms_checker *c);

#endif
