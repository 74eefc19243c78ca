/* The order in which a rank executes the program of a model block: entries with their
 * predicted times, and the lifetime of each tensor. Shared by all ranks and
 * micro-batches. */
#ifndef MS_EXEC_RUNNER_BLOCK_PLAN_H
#define MS_EXEC_RUNNER_BLOCK_PLAN_H

#include "exec/core/backend.h"
#include "sim/step/rank_memory.h"

/* Passes over a model block. */
typedef enum ms_block_pass {
    MS_BLOCK_PASS_FORWARD,
    MS_BLOCK_PASS_BACKWARD, /* both halves of the backward */
    /* first half of a split backward: recomputation and gradients of inputs */
    MS_BLOCK_PASS_BACKWARD_INPUT,
    MS_BLOCK_PASS_BACKWARD_WEIGHT, /* second half of a split backward: gradients of weights */
    MS_NUM_PART_PASSES
} ms_block_pass;

/* A node that is executed, an op of sim/simulate/block_ops.h that is predicted, or both. An op
 * without a node is the rest of the previous one, or time of no node. */
typedef struct ms_block_entry {
    int node;              /* index of the node; -1 if none */
    const ms_block_op *op; /* predicted op; NULL if none */
    bool weight;           /* belongs to the weight half of a split backward */
} ms_block_entry;

typedef struct ms_block_plan {
    const ms_block_ops *ops;
    const ms_program *program;
    int num_entries[MS_NUM_BILL_PASSES];
    const ms_block_entry *entries[MS_NUM_BILL_PASSES];
    /* (num_tensors): the last node of the pass that reads the tensor; -1 if none */
    const short *last_use[MS_NUM_PART_PASSES];
    /* (num_tensors): made before the weight half of the backward and read in it */
    const bool *delayed;
    /* largest workspace of a kernel of the block; 0 if the backend has no values */
    size_t workspace_bytes;
} ms_block_plan;

/* Makes the plan of a block, in the arena. */
ms_block_plan *ms_block_plan_make(ms_arena *arena, const ms_block_ops *ops,
                                  const ms_backend *backend, ms_real_type type);

bool ms_block_pass_runs(ms_block_pass pass, const ms_block_entry *entry);

/* Whether a tensor is freed after its last use in the pass, or at the end of the pass. */
bool ms_block_plan_frees(const ms_block_plan *plan, ms_block_pass pass, int tensor);

/* Whether a rank allocates the tensor in its walk: activations and their gradients. */
bool ms_block_allocates(const ms_program *program, int tensor);
/* Memory category of a tensor; logits and their gradients have their own. */
ms_memory_category ms_block_category(const ms_program *program, int tensor);

#endif
