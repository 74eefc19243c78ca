/* One model block and one micro-batch on a rank: the tensors of its layer program in
 * memory, and the execution of its nodes. */
#ifndef MS_EXEC_RUNNER_BLOCK_RUN_H
#define MS_EXEC_RUNNER_BLOCK_RUN_H

#include "exec/params/unit.h"
#include "exec/runner/block_plan.h"

/* A model block (embedding, layer or head) that a rank holds. */
typedef struct ms_rank_block {
    const ms_block_plan *plan;
    ms_param_unit *unit;
    const ms_local *shapes; /* (num_tensors): shards on this rank, without memory */
    /* Gradients of weights (norms) made in the first half of a split backward, saved for
     * the second half; used if memory for whole gradients exists only then. */
    void *early;
    long num_early; /* elements of `early` */
} ms_rank_block;

/* The tensors of a block for one micro-batch, from forward to the gradients of its
 * weights. */
typedef struct ms_block_cells {
    ms_local *cells;     /* (num_tensors): the program's tensors */
    bool *alive;         /* (num_tensors): allocated and counted */
    ms_routing *routing; /* tokens per expert in MoE layers, set by the dispatch */
    /* index of a node that was executed together with the one before; 0 if none */
    int done_ahead;
} ms_block_cells;

/* A tensor's memory passed between model blocks or ranks. */
typedef struct ms_handed {
    bool there;
    void *data;
    double bytes;
} ms_handed;

typedef struct ms_block_run {
    ms_rank *rank;
    const ms_rank_block *block;
    ms_block_cells *tensors;
    ms_block_pass pass;
    const ms_batch *batch;
    ms_arena *arena; /* lasts from the forward to the gradients of weights */
    void *workspace;
} ms_block_run;

/* Shards of a program's tensors on a rank (num_tensors), in the rank's arena. Elements
 * have the run's number type, or the cost model's size if the backend only simulates. */
const ms_local *ms_block_shapes(const ms_rank *rank, const ms_program *program);

/* Tensors of a block for one micro-batch, none allocated yet. Lives in the arena. */
ms_block_cells ms_block_cells_make(ms_arena *arena, const ms_rank_block *block);

/* Begins a pass: sets the addresses of weights and their gradients, which may have moved,
 * and adds gradients saved by the first half of a split backward. */
void ms_block_bind(const ms_block_run *run);
/* Allocates ms_rank_block.early and counts it as workspace. */
ms_status ms_block_make_early(ms_rank *rank, ms_rank_block *block);

/* Passes an allocated and counted tensor to the block: its input, or output gradient. */
void ms_block_give(const ms_block_run *run, int tensor, ms_handed given);
/* Takes a tensor from the block: its output, or the gradient of its input. A saved
 * activation is copied, and the copy counted. */
ms_status ms_block_take(const ms_block_run *run, int tensor, ms_handed *out);

/* Allocates a node's results, executes it and frees tensors that are no longer needed. */
ms_status ms_block_execute(const ms_block_run *run, const ms_block_entry *entry);
/* Allocates and frees like ms_block_execute, for backends that only simulate. */
ms_status ms_block_skip(const ms_block_run *run, const ms_block_entry *entry);

/* Frees the tensors that are not needed after the pass. */
void ms_block_end_pass(const ms_block_run *run);

#endif
