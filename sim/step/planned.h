/* A plan made ready to be evaluated: bills, links, parts, stages and schedule, as
 * predictions and explanations need them. */
#ifndef MS_SIM_STEP_PLANNED_H
#define MS_SIM_STEP_PLANNED_H

#include "sim/step/step.h"

typedef struct ms_planned {
    const ms_plan *plan;
    ms_workload *workload;
    ms_bill_set *bills;
    ms_links links;
    ms_block_costs parts;
    ms_pipeline pipeline; /* points into this struct */
    ms_sharding sharding;
    const ms_schedule *schedule;
    ms_stage *stages; /* by class */
} ms_planned;

/* The plan must be legal (ms_plan_check); it and the workload outlive the result, which
 * stays where it is. Arrays live in cx->arena. */
void ms_planned_open(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                     ms_planned *p);

const ms_stage *ms_planned_stage(const ms_planned *p, int stage);

/* What a pipeline rank keeps at its peak. */
ms_rank_load ms_planned_load(ms_ctx *cx, const ms_planned *p, int rank);

/* How the layer of a stage is recomputed: a stage that recomputes some of its layers
 * recomputes the first ones. */
ms_recompute ms_planned_mode(const ms_planned *p, long layer_in_stage);
const ms_bill *ms_planned_layer_bill(const ms_planned *p, int stage, long layer);

/* The parts of the model that one pipeline rank holds: layers that are alike stand once,
 * with their number. */
typedef struct ms_held_block {
    ms_block_kind part;
    int kind; /* of layers */
    ms_recompute mode;
    double count;
    const ms_bill *bill;
    /* of one; a head whose matrix is the embedding's on the same rank has the others
     * only */
    double dense_params;
} ms_held_block;

#define MS_MAX_HELD_BLOCKS (2 + 2 * MS_MAX_LAYER_KINDS)
/* The program of a part. Lives in the arena. */
const ms_program *ms_planned_program(ms_arena *arena, const ms_planned *p,
                                     const ms_held_block *held);

/* In the order embedding, layers, head; returns how many. */
int ms_planned_held(const ms_planned *p, int rank, ms_held_block out[MS_MAX_HELD_BLOCKS]);

#endif
