/* A plan prepared for evaluation: priced programs, links, costs, stages, schedule. */
#ifndef MS_SIM_STEP_PLANNED_H
#define MS_SIM_STEP_PLANNED_H

#include "sim/step/step.h"

typedef struct ms_planned {
    const ms_plan *plan;
    ms_workload *workload;
    ms_bill_set *bills;
    ms_links links;
    ms_block_costs parts;
    ms_pipeline pipeline; /* points into the same ms_planned */
    ms_sharding sharding;
    const ms_schedule *schedule;
    ms_stage *stages; /* (num_classes of the split) */
} ms_planned;

/* Prepares a legal plan (ms_plan_check); it and the workload outlive the result, which must
 * not be moved. Arrays live in cx->arena. */
void ms_planned_open(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                     ms_planned *p);

const ms_stage *ms_planned_stage(const ms_planned *p, int stage);

/* Memory inputs of a pipeline rank at its peak. */
ms_rank_load ms_planned_load(ms_ctx *cx, const ms_planned *p, int rank);

/* Recomputation of a layer: a stage that recomputes some of its layers recomputes the first
 * ones. */
ms_recompute ms_planned_mode(const ms_planned *p, long layer_in_stage);
const ms_bill *ms_planned_layer_bill(const ms_planned *p, int stage, long layer);

/* Equal blocks of the model on one pipeline rank. */
typedef struct ms_held_block {
    ms_block_kind part;
    int kind; /* kind of the layer; 0 for embedding and head */
    ms_recompute mode;
    double count;
    const ms_bill *bill;
    double dense_params; /* per block; a head excludes the rank's embedding matrix */
} ms_held_block;

#define MS_MAX_HELD_BLOCKS (2 + 2 * MS_MAX_LAYER_KINDS)
/* The program of a block. Lives in the arena. */
const ms_program *ms_planned_program(ms_arena *arena, const ms_planned *p,
                                     const ms_held_block *held);

/* Lists the blocks of a rank in the order embedding, layers, head; returns their number. */
int ms_planned_held(const ms_planned *p, int rank, ms_held_block out[MS_MAX_HELD_BLOCKS]);

#endif
