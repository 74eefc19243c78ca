/* One model block and one micro-batch on a rank: the tensors of its program in memory,
 * and the execution of its nodes. */
#ifndef MS_EXEC_RUNNER_BLOCK_RUN_H
#define MS_EXEC_RUNNER_BLOCK_RUN_H

#include "exec/params/unit.h"
#include "exec/runner/block_plan.h"

/* A model block that a rank holds. */
typedef struct ms_rank_block {
    const ms_block_plan *plan;
    ms_param_unit *unit;
    const ms_local *shapes; /* shapes on this rank, without memory (num_tensors) */
    /* Gradients of weights made in the first half of a split backward (norms), saved for
     * the second half; used if the whole gradients exist only then. */
    void *early;
    long num_early; /* number of elements of `early` */
} ms_rank_block;

/* The tensors of a block for one micro-batch, from forward to the gradients of its
 * weights. */
typedef struct ms_block_cells {
    ms_local *cells;     /* tensors of the program (num_tensors) */
    bool *alive;         /* whether each tensor is allocated and counted (num_tensors) */
    ms_routing *routing; /* routing of experts in MoE layers, set by the dispatch */
    /* a node that was executed together with the one before it; 0 if none */
    int done_ahead;
} ms_block_cells;

/* A tensor passed between model blocks or ranks. */
typedef struct ms_handed {
    bool there;
    void *data;
    double bytes;
} ms_handed;

typedef struct ms_block_run {
    ms_rank *rank;
    const ms_rank_block *part;
    ms_block_cells *tensors;
    ms_block_pass pass;
    const ms_batch *batch;
    ms_arena *arena; /* arena that lasts from forward to weight gradients */
    void *workspace;
} ms_block_run;

/* (num_tensors): the shard of each tensor of a program on the rank. Elements have the
 * bytes of the run's real type if the backend has values, one byte in dropout masks.
 * Lives in the rank's arena. */
const ms_local *ms_block_shapes(const ms_rank *rank, const ms_program *program);

/* Cells without any allocated tensor. Lives in the arena. */
ms_block_cells ms_block_cells_make(ms_arena *arena, const ms_rank_block *part);

/* Called before a pass: sets the memory of weights and their gradients, which may have
 * moved, and adds gradients saved by the first half of a split backward. */
void ms_block_bind(const ms_block_run *run);
/* Allocates `early` for the first half of a split backward; counted as workspace. */
ms_status ms_block_make_early(ms_rank *rank, ms_rank_block *part);

/* Passes a tensor to the block; it is already allocated and counted. */
void ms_block_give(const ms_block_run *run, int tensor, ms_handed given);
/* Takes a tensor from the block: its output, or the gradient of its input. If it is a
 * saved activation it is copied, and the copy counted. */
ms_status ms_block_take(const ms_block_run *run, int tensor, ms_handed *out);

/* Allocates the results of a node, executes it and frees tensors that are no longer
 * needed. */
ms_status ms_block_execute(const ms_block_run *run, const ms_block_entry *entry);
/* Like ms_block_execute, but without values: only allocates and frees. */
ms_status ms_block_skip(const ms_block_run *run, const ms_block_entry *entry);

/* Frees the tensors that the pass leaves. */
void ms_block_end_pass(const ms_block_run *run);

#endif
