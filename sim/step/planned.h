/* Folder sim/step: one plan evaluated: links, stages, memory, bound, replay, traffic,
 * prediction; no search over plans.
 *
 * A plan prepared for evaluation: priced programs (ms_bill), links, costs, schedule. */
#ifndef MS_SIM_STEP_PLANNED_H
#define MS_SIM_STEP_PLANNED_H

#include "sim/step/step.h"

typedef struct ms_planned {
    const ms_plan *plan;
    ms_workload *workload;
    ms_bill_set *bills;
    /* links and block costs of all ranks; those of a stage: ms_planned_prices */
    ms_links links;
    ms_block_costs blocks;
    ms_pipeline pipeline; /* points into this ms_planned */
    ms_sharding sharding;
    const ms_schedule *schedule; /* condensed, if long */
    ms_stage *stages;            /* (one per class of equal stages) */
} ms_planned;

/* Prepares a legal plan (ms_plan_check) for evaluation. Plan and workload must outlive
 * the result, which must not be moved. Arrays live in cx->arena. */
void ms_planned_open(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                     ms_planned *p);
/* Prepares a plan with every action of its schedule, to run or simulate them. MS_EINPUT:
 * they are more than MS_MOST_ACTIONS. */
ms_status ms_planned_open_listed(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                                 ms_planned *p);

/* Lower bound of a legal plan's step time in seconds (ms_step_bound_s). Only on mixed
 * clusters a schedule is made, to divide the layers. */
double ms_planned_bound_s(ms_ctx *cx, ms_workload *workload, const ms_plan *plan);

/* Share of a rank's listed backwards that run as two halves. */
double ms_planned_split_frac(const ms_planned *p, int rank);
/* Seconds for which a pipeline rank waits for the host in a step with nothing beside its
 * passes: halves of split backwards wait for their own launches, which may be longer. */
double ms_planned_host_s(const ms_planned *p, int rank);

const ms_stage *ms_planned_stage(const ms_planned *p, int stage);
/* The prices of a stage, on the devices that have it. */
ms_prices ms_planned_prices(const ms_planned *p, int stage);
/* The links of a pipeline rank's groups but pp and that of all ranks. */
const ms_links *ms_planned_links(const ms_planned *p, int rank);

/* Parameters, saved activations and buffers of a pipeline rank at its memory peak. */
ms_rank_load ms_planned_load(ms_ctx *cx, const ms_planned *p, int rank);

/* How a layer is recomputed; if recompute_layers > 0, only a stage's first layers are. */
ms_layer_mode ms_planned_mode(const ms_planned *p, long layer_in_stage);
const ms_bill *ms_planned_layer_bill(const ms_planned *p, int stage, long layer);

/* One or more equal blocks (embedding, layers, head) on one pipeline rank. */
typedef struct ms_held_block {
    ms_block_kind block;
    int kind; /* kind of layer; 0 for embedding and head */
    ms_layer_mode mode;
    double count;
    const ms_bill *bill;
    /* per block; a head's without a matrix that an embedding on the rank has */
    double dense_params;
    ms_frozen_bytes frozen;
    const ms_workload *workload; /* that priced the bill */
} ms_held_block;

#define MS_MAX_HELD_BLOCKS (2 + 2 * MS_MAX_LAYER_KINDS)
/* The layer program of a block; lives in the arena. */
const ms_program *ms_planned_program(ms_arena *arena, const ms_planned *p,
                                     const ms_held_block *held);

/* Lists a rank's blocks in the order embedding, layers, head; returns their number. */
int ms_planned_held(const ms_planned *p, int rank, ms_held_block out[MS_MAX_HELD_BLOCKS]);

#endif
