/* A type checker of layer programs: is what a program computes on many ranks what it
 * computes on one? Every node is held against a table of the operation's algebra, axis by
 * axis; backward nodes against the forward nodes they come from; gradients and results
 * against what the program promises to the outside. Nothing of the propagation is used,
 * so that a mistake there is found.
 *
 * What is checked, and assumed: kernels do what program.h says; given tensors (weights,
 * moments, the program's input and the gradient of its output) lie as they are placed.
 * What is rejected: a program for which one of these rules does not follow. Some that are
 * legal by accident are rejected too, for instance a sum of copies that a later operation
 * happens to cancel.
 *
 * Sources: placement rules as in GSPMD (Xu et al. 2021, arXiv:2105.04663, section 3) and
 * DTensor (pytorch torch/distributed/tensor/_ops/_einsum_strategy.py, _pointwise_ops.py);
 * types of costmodel/tensor/spmd.h; strided shards as in
 * torch/distributed/tensor/placement_types.py (_StridedShard). */
#ifndef MS_COSTMODEL_PROGRAM_PROGRAM_CHECK_H
#define MS_COSTMODEL_PROGRAM_PROGRAM_CHECK_H

#include "costmodel/program/program.h"

typedef enum ms_check_kind {
    /* operands that are missing, too early, on another mesh, or have other dims than the
     * operation takes */
    MS_CHECK_STRUCTURE,
    MS_CHECK_LAYOUT,          /* a placement that the tensor cannot have */
    MS_CHECK_PARTIAL_PRODUCT, /* two partial sums multiplied */
    MS_CHECK_PARTIAL_OPERAND, /* a partial sum where the operation is not linear in it */
    MS_CHECK_SPLIT,           /* operands split differently */
    MS_CHECK_STRIDED,         /* a contiguous against a strided split */
    /* a result that is claimed to lie otherwise than follows from the operands */
    MS_CHECK_RESULT,
    MS_CHECK_FORGOTTEN_REDUCTION, /* a partial sum claimed or used as if whole */
    MS_CHECK_REDISTRIBUTION,      /* a change of placement that no collective makes */
    MS_CHECK_ROWS,                /* rows of experts in the order of another choice */
    /* a backward node or a gradient that is not the one of its forward */
    MS_CHECK_GRADIENT,
    MS_CHECK_UPDATE, /* of a weight: missing, twice, or with another gradient */
    MS_NUM_CHECK_KINDS
} ms_check_kind;
extern const char *const ms_check_kind_names[MS_NUM_CHECK_KINDS];

typedef struct ms_check_finding {
    int node;         /* -1: not of one node */
    const char *axis; /* "dp" ... "etp"; NULL: not of one axis */
    ms_check_kind kind;
    char text[360]; /* one sentence, beginning with the node and the axis */
} ms_check_finding;

/* True when the program is legal. Otherwise the first finding is copied to `first` (which
 * may be NULL). Takes a few hundred microseconds: for explanations and tests, not for
 * searches. */
bool ms_program_check(const ms_program *program, ms_check_finding *first);
/* All findings, at most `capacity` of them copied; returns how many there are. One
 * mistake often shows at several nodes. */
int ms_program_findings(const ms_program *program, ms_check_finding *findings,
                        int capacity);

/* For each tensor its gradient as it lies where it enters the backward of what made the
 * tensor; of a weight or of the program's input, as it leaves the program; of another
 * placement of a tensor, as a user gives it. -1: none. Lives in the arena. */
const int *ms_program_gradients(ms_arena *arena, const ms_program *program);

#endif
