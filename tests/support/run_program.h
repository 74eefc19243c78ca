/* Executes a layer program with kernels (exec/cpu/kernels.h) on one rank, from the values
 * that the interpreter starts from, so that every tensor of both can be compared. */
#ifndef MS_TESTS_SUPPORT_RUN_PROGRAM_H
#define MS_TESTS_SUPPORT_RUN_PROGRAM_H

#include "exec/cpu/kernels.h"
#include "tests/support/interpreter.h"

typedef struct ms_program_run {
    const ms_program *program;
    const ms_kernels *kernels;
    ms_arena *arena;
    ms_local *locals; /* (num_tensors) */
    ms_batch batch;
    ms_routing routing;
    bool balanced_routing;
} ms_program_run;

/* What weights' gradients hold before they are added to; all other results begin as
 * NaN. */
#define MS_RUN_GRADIENT_START 0.25

/* Memory for all tensors; weights, input, gradient of the output and tokens are those of
 * `interp`, a run on one rank. */
ms_program_run *ms_program_run_prepare(ms_interp *interp, const ms_kernels *kernels);
/* A call of one node, with its operands and workspace. */
ms_op_call ms_program_run_call(ms_program_run *run, const ms_node *node);
/* All nodes in their order; an exchange with oneself is a copy. */
void ms_program_run_execute(ms_program_run *run);
/* The values of a tensor in fp64; in the arena. Gradients of weights without what they
 * began with. */
const double *ms_program_run_values(ms_program_run *run, int tensor);
void ms_program_run_set(ms_program_run *run, int tensor, const double *values);

#endif
