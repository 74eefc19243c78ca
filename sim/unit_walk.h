/* Parameters and gradients that move part by part beside the work of a stage (ZeRO 2,
 * ZeRO 3): gathers one part ahead of it, reductions behind it, both in turn on one stream
 * (docs/formulas 5.5). Exact for the parts in their order, whatever their kinds. */
#ifndef MS_SIM_UNIT_WALK_H
#define MS_SIM_UNIT_WALK_H

#include "sim/parts.h"

/* Gradients that are reduced once a step: to shards, and over dp_replicate; or whole
 * (ZeRO 0). */
typedef enum ms_step_reduction {
    MS_REDUCES_SHARDS,
    MS_REDUCES_WHOLE,
    MS_NUM_STEP_REDUCTIONS
} ms_step_reduction;

/* Of a stage's actions, with a stack that overlaps. */
typedef struct ms_unit_times {
    /* ZeRO 3; the last of a step beside sums over dp_replicate, too */
    double forward_s, backward_s, last_backward_s;
    double input_s, last_weight_s; /* of a split backward */
    double tail_s;                 /* of what the last backward reduces, after it */
    /* of a backward's first gather, what hides behind a forward before it: nothing does
     * behind another backward */
    double regather_s;
    double weight_s;           /* ZeRO 2 and 3: until its gradients are reduced */
    double reduced_backward_s; /* the same of a whole backward with ZeRO 2 */
    /* Reductions of a step beside the last backward, by what the sharding has them be
     * (ms_step_reduction): what is left of them when it ends, and what its last part
     * needs. Nothing slows anything here. */
    double late_s[MS_NUM_STEP_REDUCTIONS], last_unit_s[MS_NUM_STEP_REDUCTIONS];
    /* Gathers of a step that begin with it: how much longer than a forward alone it takes
     * beside them, and the gather of its first part. */
    double gathering_s, first_gather_s;
} ms_unit_times;

/* One or more parts that are alike. */
typedef struct ms_moved_unit {
    const ms_part *part; /* NULL: there is none */
    double gather_s, reduce_s;
    double count;
} ms_moved_unit;

/* Work in turn, and what moves behind it: ends of both so far. */
typedef struct ms_lane {
    double worked_s, moved_s;
} ms_lane;

typedef struct ms_unit_walk {
    double interference_frac;
    ms_unit_times *out;
    ms_moved_unit before, at; /* in the order of a backward */
    ms_lane whole, weight;    /* every micro-batch */
    ms_lane last_weight;      /* beside sums over dp_replicate */
    /* reductions of the last backward behind its work: no gather has waited for them */
    double owed_s;
    ms_lane last[MS_NUM_STEP_REDUCTIONS];
    ms_lane gathers; /* from the end of the forward back */
} ms_unit_walk;

/* The next parts on the way from the last one to the first; `moved` tells what is
 * gathered and reduced for them. */
void ms_unit_walk_pass(ms_unit_walk *walk, const ms_part *part, const ms_part *moved,
                       double count);
void ms_unit_walk_end(ms_unit_walk *walk);

#endif
