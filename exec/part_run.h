/* One part of the model and one micro-batch on a rank: the tensors of its program in
 * memory, and the execution of its nodes. */
#ifndef MS_EXEC_PART_RUN_H
#define MS_EXEC_PART_RUN_H

#include "exec/part_plan.h"
#include "exec/unit.h"

/* A part that a rank holds. */
typedef struct ms_rank_part {
    const ms_part_plan *plan;
    ms_param_unit *unit;
    const ms_local *shapes; /* (num_tensors): of this rank, without memory */
    /* Of a split backward whose whole gradients are there in the second half only:
     * gradients of weights that the first half makes (norms), kept until then. */
    void *early;
    long num_early; /* elements */
} ms_rank_part;

/* Its tensors for one micro-batch, from forward to the gradients of its weights. */
typedef struct ms_part_cells {
    ms_local *cells;     /* (num_tensors) */
    bool *alive;         /* (num_tensors): allocated and counted */
    ms_routing *routing; /* of layers with experts, from the dispatch on */
    int done_ahead;      /* a node that was carried out with the one before it; 0: none */
} ms_part_cells;

/* A tensor on its way between parts and ranks. */
typedef struct ms_handed {
    bool there;
    void *data;
    double bytes;
} ms_handed;

typedef struct ms_part_run {
    ms_rank *rank;
    const ms_rank_part *part;
    ms_part_cells *tensors;
    ms_part_pass pass;
    const ms_batch *batch;
    ms_arena *arena; /* lasts from forward to weight gradients */
    void *workspace;
} ms_part_run;

/* (num_tensors): what the rank holds of each tensor of a program; with values an element
 * takes the bytes of the run's real type, dropout masks one. Lives in the rank's arena. */
const ms_local *ms_part_shapes(const ms_rank *rank, const ms_program *program);

/* Fresh cells, nothing alive. Lives in the arena. */
ms_part_cells ms_part_cells_make(ms_arena *arena, const ms_rank_part *part);

/* Before a pass: the weights' and their gradients' memory, which may have moved. What the
 * first half of a backward left is added. */
void ms_part_bind(const ms_part_run *run);
/* Room for gradients that the first half of a split backward makes, as workspace. */
ms_status ms_part_make_early(ms_rank *rank, ms_rank_part *part);

/* Gives a tensor that was made elsewhere to the part; it is alive and counted already. */
void ms_part_give(const ms_part_run *run, int tensor, ms_handed given);
/* Takes a tensor away from the part: its output, or the gradient of its input. A saved
 * one is copied, and the copy counted. */
ms_status ms_part_take(const ms_part_run *run, int tensor, ms_handed *out);

/* Executes a node (its results get their memory first), then frees what nothing needs any more. */
ms_status ms_part_execute(const ms_part_run *run, const ms_part_entry *entry);
/* The same but for the values: memory comes and goes. */
ms_status ms_part_skip(const ms_part_run *run, const ms_part_entry *entry);

/* Frees what the pass leaves over. */
void ms_part_end_pass(const ms_part_run *run);

#endif
