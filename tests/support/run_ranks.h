/* Executes a layer program on a backend with several ranks, by kernels and transfers,
 * keeping all tensors of all ranks, and compares them with the reference interpreter's.
 * Both start from equal values. */
#ifndef MS_TESTS_SUPPORT_RUN_RANKS_H
#define MS_TESTS_SUPPORT_RUN_RANKS_H

#include "exec/lower/lower.h"
#include "tests/support/interpreter.h"

/* A plan for the mesh of a program: one pipeline rank, one replica, the default axis
 * order. */
ms_plan ms_ranks_plan(const ms_program *program);

typedef struct ms_ranks_job {
    const ms_program *program; /* compute type must be that of the run */
    const ms_plan *plan;
    /* interpreter after its run: source of initial values, positions, tokens, routing */
    ms_interp *like;
    const ms_backend *backend;
    ms_real_type type;
} ms_ranks_job;

/* Runs a program; `cells` gets the ranks' tensors, (num_tensors, num_ranks) in the
 * interpreter's order of ranks. Tensors that no node computed stay empty. */
ms_status ms_ranks_run(ms_ctx *cx, const ms_ranks_job *job, ms_cell **cells);

/* Largest difference from the interpreter, relative to each tensor's largest value, over
 * all ranks; if it exceeds the tolerance, `why` names tensor and rank. Attention scores
 * of a ring are not compared, as nothing reads them. */
double ms_ranks_difference(ms_arena *arena, const ms_interp *like, const ms_cell *cells,
                           double tolerance, const char **why);

#endif
