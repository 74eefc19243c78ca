/* Type checker of layer programs: whether a program computes on many ranks what it
 * computes on one. Every node is compared with a table of the operation's algebra, axis
 * by axis; backward nodes with their forward nodes; gradients and results with what the
 * program promises. Independent of the propagation, so that it finds mistakes there.
 * Assumed: kernels do what program.h says, and given tensors (weights, moments, the
 * program's input, the gradient of its output) are placed as stated. A few programs that
 * are legal by accident are rejected, for instance a sum of copies that a later operation
 * cancels. Sources: GSPMD (Xu et al. 2021, arXiv:2105.04663, section 3); DTensor (pytorch
 * torch/distributed/tensor/_ops/_einsum_strategy.py, _pointwise_ops.py); types of
 * costmodel/tensor/spmd.h; strided shards as in
 * torch/distributed/tensor/placement_types.py (_StridedShard). */
#ifndef MS_COSTMODEL_PROGRAM_PROGRAM_CHECK_H
#define MS_COSTMODEL_PROGRAM_PROGRAM_CHECK_H

#include "costmodel/program/program.h"

typedef enum ms_check_kind {
    /* operands missing, used before they are made, on another mesh or of wrong dims */
    MS_CHECK_STRUCTURE,
    MS_CHECK_LAYOUT,              /* a placement that the tensor cannot have */
    MS_CHECK_PARTIAL_PRODUCT,     /* two partial sums multiplied */
    MS_CHECK_PARTIAL_OPERAND,     /* a partial sum as operand of a nonlinear operation */
    MS_CHECK_SPLIT,               /* operands of a node split differently */
    MS_CHECK_STRIDED,             /* one operand split contiguously, another strided */
    MS_CHECK_RESULT,              /* a result placed otherwise than its operands imply */
    MS_CHECK_FORGOTTEN_REDUCTION, /* a partial sum treated as the whole sum */
    MS_CHECK_REDISTRIBUTION,      /* a change of placement that no collective makes */
    MS_CHECK_ROWS,                /* expert rows ordered by another routing choice */
    MS_CHECK_GRADIENT,            /* backward node or gradient of a wrong forward node */
    MS_CHECK_UPDATE, /* weight update missing, repeated or with another gradient */
    MS_NUM_CHECK_KINDS
} ms_check_kind;
extern const char *const ms_check_kind_names[MS_NUM_CHECK_KINDS];

typedef struct ms_check_finding {
    int node;         /* index of the node; -1: of no single node */
    const char *axis; /* "dp" ... "etp"; NULL: no single axis */
    ms_check_kind kind;
    char text[360]; /* one sentence that names node and axis first */
} ms_check_finding;

/* True if the program type-checks; otherwise *first (if not NULL) is the first finding.
 * Takes a few hundred microseconds: for explanations and tests, not for searches. */
bool ms_program_check(const ms_program *program, ms_check_finding *first);
/* Copies at most `capacity` findings; returns how many exist, maybe several per
 * mistake. */
int ms_program_findings(const ms_program *program, ms_check_finding *findings,
                        int capacity);

/* For each tensor the index of one gradient, -1: none. Forward result: the gradient that
 * its producer's backward reads; weight or program input: the one that leaves the
 * program; redistributed copy: one that a consumer gives. Lives in the arena. */
const int *ms_program_gradients(ms_arena *arena, const ms_program *program);

#endif
