/* Functions shared by program_check*.c. A check reports its findings and continues. */
#ifndef MS_COSTMODEL_PROGRAM_PROGRAM_CHECK_PRIV_H
#define MS_COSTMODEL_PROGRAM_PROGRAM_CHECK_PRIV_H

#include "costmodel/program/program_check.h"

typedef struct ms_checker {
    const ms_program *program;
    ms_arena *arena; /* scratch memory of one check */
    ms_check_finding *findings;
    int capacity, num_findings;
    int *root;     /* [tensor] tensor that it is a redistributed or recomputed copy of */
    int *gradient; /* [tensor] its gradient (ms_program_gradients); -1: none */
} ms_checker;

/* Reports a finding at a node; `axis` is one of its first operand's mesh, or -1. */
void ms_checker_report(ms_checker *c, ms_check_kind kind, int node, int axis,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Reports a finding at a tensor. */
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

/* Whether placements on a mesh axis matter: not if it has one rank, except axis 0 (dp,
 * edp), which has one rank while programs are priced. */
bool ms_checker_is_active(const ms_program *program, int mesh, int axis);

typedef struct ms_placement_words {
    char text[48];
} ms_placement_words;
/* Describes a placement: "split by s", "a partial sum", ... */
ms_placement_words ms_checker_describe(ms_placement at);

/* Reports the axes on which a tensor is a partial sum although `node` (-1: none) uses it
 * as whole, and the axes on which it was reduced. */
void ms_checker_require_whole(ms_checker *c, int tensor, int node, const char *what);

/* ---- checks of node n or of all nodes ---- */

/* Checks dims and placements of a node's operands and results. */
void ms_check_operation(ms_checker *c, int n);
/* Checks nodes that move data and experts' row order (program_check_moves.c). */
void ms_check_redistribution(ms_checker *c, int n);
void ms_check_exchange(ms_checker *c, int n);
void ms_check_rows(ms_checker *c);
/* Checks backward, recomputed nodes, gradients, updates (program_check_backward.c). */
void ms_check_backward(ms_checker *c);
void ms_check_updates(ms_checker *c);

#endif
