/* Executes a layer program on one rank with CPU kernels (exec/cpu/kernels.h), from the
 * initial values of the reference interpreter, so that every tensor can be compared. */
#ifndef MS_TESTS_SUPPORT_RUN_PROGRAM_H
#define MS_TESTS_SUPPORT_RUN_PROGRAM_H

#include "exec/cpu/kernels.h"
#include "tests/support/interpreter.h"

typedef struct ms_program_run {
    const ms_program *program;
    const ms_kernels *kernels;
    ms_arena *arena;
    ms_local *locals; /* indexed by tensor */
    ms_batch batch;
    ms_routing routing;
    bool balanced_routing;
} ms_program_run;

/* Initial value of weight gradients, to which nodes add; all other results begin as
 * NaN. */
#define MS_RUN_GRADIENT_START 0.25

/* Allocates all tensors; weights, input, output gradient and tokens are those of
 * `interp`, which ran the program on one rank. */
ms_program_run *ms_program_run_prepare(ms_interp *interp, const ms_kernels *kernels);
/* The call of one node, with its operands and workspace. */
ms_op_call ms_program_run_call(ms_program_run *run, const ms_node *node);
/* Executes a node; an exchange with oneself is a copy. */
void ms_program_run_node(ms_program_run *run, const ms_node *node);
/* Executes all nodes in their order. */
void ms_program_run_execute(ms_program_run *run);
/* Values of a tensor in fp64, in the arena; weight gradients less
 * MS_RUN_GRADIENT_START. */
const double *ms_program_run_values(ms_program_run *run, int tensor);
void ms_program_run_set(ms_program_run *run, int tensor, const double *values);

#endif
