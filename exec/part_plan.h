/* How a rank walks the program of a part: entries in the order of execution with what
 * they are predicted to take, and how long each tensor lives. Shared by all ranks and
 * micro-batches. */
#ifndef MS_EXEC_PART_PLAN_H
#define MS_EXEC_PART_PLAN_H

#include "exec/backend.h"
#include "sim/memory.h"

/* What of a part runs at once. */
typedef enum ms_part_pass {
    MS_PART_FORWARD,
    MS_PART_BACKWARD,        /* all of it */
    MS_PART_BACKWARD_INPUT,  /* recomputation and gradients of inputs */
    MS_PART_BACKWARD_WEIGHT, /* gradients of weights */
    MS_NUM_PART_PASSES
} ms_part_pass;

/* A node that is executed, an op of sim/part_ops.h that is predicted, or both. An op
 * without a node is the rest of the one before it, or time that no node stands for. */
typedef struct ms_part_entry {
    int node;             /* -1: none */
    const ms_part_op *op; /* NULL: none */
    bool weight;          /* runs with gradients of weights when the backward is split */
} ms_part_entry;

typedef struct ms_part_plan {
    const ms_part_ops *ops;
    const ms_program *program;
    int num_entries[MS_NUM_BILL_PASSES];
    const ms_part_entry *entries[MS_NUM_BILL_PASSES];
    /* (num_tensors): the node after which nothing of the pass reads it; -1: nothing does */
    const short *last_use[MS_NUM_PART_PASSES];
    /* (num_tensors): read by gradients of weights and made before them */
    const bool *delayed;
    /* that a kernel of the part needs at the most; 0 without values */
    size_t workspace_bytes;
} ms_part_plan;

/* Lives in the arena. */
ms_part_plan *ms_part_plan_make(ms_arena *arena, const ms_part_ops *ops,
                                const ms_backend *backend, ms_real_type type);

bool ms_part_pass_runs(ms_part_pass pass, const ms_part_entry *entry);

/* Whether a tensor goes after its last use in the pass, or at the pass' end. */
bool ms_part_plan_frees(const ms_part_plan *plan, ms_part_pass pass, int tensor);

/* Activations and gradients of them: what a rank allocates as it walks. */
bool ms_part_allocates(const ms_program *program, int tensor);
/* Logits and their gradients are a category of their own. */
ms_memory_part ms_part_category(const ms_program *program, int tensor);

#endif
