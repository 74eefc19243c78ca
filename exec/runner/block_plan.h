/* The order in which a rank executes the layer program of a model block: entries with
 * their predicted times, and the lifetime of each tensor. Shared by all ranks and
 * micro-batches. */
#ifndef MS_EXEC_RUNNER_BLOCK_PLAN_H
#define MS_EXEC_RUNNER_BLOCK_PLAN_H

#include "exec/core/backend.h"
#include "sim/step/rank_memory.h"

typedef enum ms_block_pass {
    MS_BLOCK_PASS_FORWARD,
    MS_BLOCK_PASS_BACKWARD, /* both halves of the backward */
    /* first half of a split backward: recomputation and gradients of inputs */
    MS_BLOCK_PASS_BACKWARD_INPUT,
    MS_BLOCK_PASS_BACKWARD_WEIGHT, /* second half of a split backward: weight gradients */
    MS_NUM_PART_PASSES
} ms_block_pass;

/* A node to execute, a predicted op (sim/simulate/block_ops.h), or both. An op without
 * node is a transfer of the preceding ring attention, or other predicted time. */
typedef struct ms_block_entry {
    int node;              /* index of the node in the layer program; -1 if none */
    const ms_block_op *op; /* predicted op; NULL if none */
    bool weight;           /* runs in the weight half of a split backward */
} ms_block_entry;

typedef struct ms_block_plan {
    const ms_block_ops *ops;
    const ms_program *program;
    int num_entries[MS_NUM_BILL_PASSES];
    const ms_block_entry *entries[MS_NUM_BILL_PASSES];
    /* [pass][tensor]: index of the pass's last node that reads the tensor; -1 if none */
    const short *last_use[MS_NUM_PART_PASSES];
    /* [tensor]: made before a split backward's second half and read in that half */
    const bool *delayed;
    /* largest scratch memory of the block's kernels; 0 if they need none */
    size_t workspace_bytes;
} ms_block_plan;

/* Makes the plan of a block's execution, in the arena. */
ms_block_plan *ms_block_plan_make(ms_arena *arena, const ms_block_ops *ops,
                                  const ms_backend *backend, ms_real_type type);

bool ms_block_pass_runs(ms_block_pass pass, const ms_block_entry *entry);

/* Whether a pass frees a tensor, after the tensor's last use or at the pass's end. */
bool ms_block_plan_frees(const ms_block_plan *plan, ms_block_pass pass, int tensor);

/* Whether a block's passes allocate the tensor: activations and their gradients. */
bool ms_block_allocates(const ms_program *program, int tensor);
/* Memory category of a tensor: logits if it has a vocabulary dim, else activations. */
ms_memory_category ms_block_category(const ms_program *program, int tensor);

#endif
