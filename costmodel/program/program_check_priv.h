/* Internals of program_check*.c; each check reports its findings and continues. */
#ifndef MS_COSTMODEL_PROGRAM_PROGRAM_CHECK_PRIV_H
#define MS_COSTMODEL_PROGRAM_PROGRAM_CHECK_PRIV_H

#include "costmodel/program/program_check.h"

typedef struct ms_checker {
    const ms_program *program;
    ms_arena *arena; /* scratch of one check */
    ms_check_finding *findings;
    int capacity, num_findings;
    /* [tensor] tensor of which it is a redistributed or recomputed copy */
    int *root;
    /* [tensor] its gradient, taken by its producer or given by a consumer; -1 if none */
    int *gradient;
} ms_checker;

/* Reports a finding at a node; `axis` of the first operand's mesh, -1 if none. */
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

/* Whether placements on an axis matter: not on an axis of one rank, except axis 0 (dp,
 * edp), which has one rank while programs are priced. */
bool ms_checker_is_active(const ms_program *program, int mesh, int axis);

typedef struct ms_placement_words {
    char text[48];
} ms_placement_words;
/* Describes a placement: "split by s", "a partial sum", ... */
ms_placement_words ms_checker_describe(ms_placement at);

/* Reports axes on which a tensor is still a partial sum where `node` (-1: none) uses it
 * as whole, and the axes on which it was reduced. */
void ms_checker_require_whole(ms_checker *c, int tensor, int node, const char *what);

/* ---- checks of node n or of all nodes ---- */

/* program_check_types.c: dims and placements of operands and results */
void ms_check_operation(ms_checker *c, int n);
/* program_check_moves.c: nodes that move data, and the order of rows */
void ms_check_redistribution(ms_checker *c, int n);
void ms_check_exchange(ms_checker *c, int n);
void ms_check_rows(ms_checker *c);
/* program_check_backward.c: backward and recomputed nodes, gradients, updates */
void ms_check_backward(ms_checker *c);
void ms_check_updates(ms_checker *c);

#endif
