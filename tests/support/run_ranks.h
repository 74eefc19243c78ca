/* Executes a layer program on a backend with values, all tensors of all ranks kept:
 * kernels for what computes, lowerings for what communicates. Compared with the
 * interpreter, whose initial values it starts from. */
#ifndef MS_TESTS_SUPPORT_RUN_RANKS_H
#define MS_TESTS_SUPPORT_RUN_RANKS_H

#include "exec/lower/lower.h"
#include "tests/support/interpreter.h"

/* A plan with the axes of a program: one pipeline rank, one replica, the default
 * order. */
ms_plan ms_ranks_plan(const ms_program *program);

typedef struct ms_ranks_job {
    const ms_program *program; /* of the compute type of the run */
    const ms_plan *plan;
    ms_interp *like; /* initial values, positions, tokens, routing; has run */
    const ms_backend *backend;
    ms_real_type type;
} ms_ranks_job;

/* What the ranks hold at the end: (num_tensors, num_ranks), ranks in the order of the
 * interpreter. Tensors that no node gave stay empty. */
ms_status ms_ranks_run(ms_ctx *cx, const ms_ranks_job *job, ms_cell **cells);

/* Largest difference from the interpreter over all ranks, each tensor relative to its
 * largest value; where it is too large, `why` names tensor and rank. Scores of a ring are
 * not compared: nothing needs them. */
double ms_ranks_difference(ms_arena *arena, const ms_interp *like, const ms_cell *cells,
                           double tolerance, const char **why);

#endif
