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
    /* Weight gradients (of norms) that the first half of a split backward makes, kept for
     * the second half; NULL where unused. */
    void *early;
    long num_early;            /* elements of `early` */
    ms_scale_history *history; /* NULL unless the recipe is delayed scaling */
} ms_rank_block;

/* The first bytes of a tensor, in host memory. */
typedef struct ms_host_part {
    void *memory;
    double bytes; /* 0: the tensor is on the device */
} ms_host_part;

/* The tensors of a block for one micro-batch, from forward to the gradients of its
 * weights. */
typedef struct ms_block_cells {
    ms_local *cells; /* (num_tensors): the program's tensors */
    bool *alive;     /* (num_tensors): allocated and counted, with all of its bytes */
    /* (num_tensors): what is in host memory; the cell's data are then the other bytes */
    ms_host_part *on_host;
    /* tokens per expert in MoE layers, set by the dispatch; [i]: of i-th module of
     * multi-token prediction */
    ms_routing *routing[1 + MS_MAX_NEXTN_LAYERS];
    /* index of a node already executed, fused with the node before it; 0 if none */
    int done_ahead;
} ms_block_cells;

/* A tensor whose memory passes from one model block, or pipeline stage, to another. */
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
    ms_arena *arena; /* freed after the micro-batch's weight gradients */
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

/* Makes the block's history if kernels need one: under delayed scaling. It is in the rank's
 * arena, and in no ledger. */
void ms_block_make_history(const ms_rank *rank, ms_rank_block *block, long num_steps);

/* Makes `given`, already allocated and counted, a tensor of the block: the block's input,
 * or the gradient of its output. */
void ms_block_give(const ms_block_run *run, int tensor, ms_handed given);
/* Moves a tensor out of the block to `out`: the block's output, or the gradient of its
 * input. If the backward needs the tensor, `out` is a copy, counted as memory. */
ms_status ms_block_take(const ms_block_run *run, int tensor, ms_handed *out);

/* Allocates a node's results, executes it and frees tensors that are no longer needed. */
ms_status ms_block_execute(const ms_block_run *run, const ms_block_entry *entry);
/* Allocates and frees like ms_block_execute, for backends that only simulate. */
ms_status ms_block_skip(const ms_block_run *run, const ms_block_entry *entry);

/* Slots of a step's fp64 sums on the device: squared gradients, the losses of each module of
 * multi-token prediction, then a slot per micro-batch's loss (ms_loss_slot). */
#define MS_SQUARES_SLOT     0
#define MS_MODULE_LOSS_SLOT 1
#define MS_LOSS_SLOT        (MS_MODULE_LOSS_SLOT + MS_MAX_NEXTN_LAYERS)

/* Adds the losses of a tensor's tokens to the sum of a slot; ms_block_execute does so for
 * modules. If every rank of a tp group has all tokens, only tp rank 0 adds. */
void ms_block_add_loss(const ms_block_run *run, int tensor, int slot);

/* Frees the tensors that are not needed after the pass. */
void ms_block_end_pass(const ms_block_run *run);

#endif
