/* Overlap of a stage's compute with block-wise transfers of parameters and gradients
 * (ZeRO-2, ZeRO-3): gathers one block ahead of the compute, reductions behind it, in
 * sequence on one stream; exact for any order of blocks (docs/formulas 5.5). */
#ifndef MS_SIM_STEP_UNIT_WALK_H
#define MS_SIM_STEP_UNIT_WALK_H

#include "sim/step/block_cost.h"

/* Reductions that run once per step: to shards and over dp_replicate, or of whole
 * gradients (ZeRO-0). */
typedef enum ms_step_reduction {
    MS_REDUCES_SHARDS,
    MS_REDUCES_WHOLE,
    MS_NUM_STEP_REDUCTIONS
} ms_step_reduction;

/* Durations of a stage's actions in seconds, with a stack that overlaps transfers with
 * compute. */
typedef struct ms_unit_times {
    /* ZeRO-3; the last backward also overlaps with reductions over dp_replicate */
    double forward_s, backward_s, last_backward_s;
    double input_s, last_weight_s; /* ZeRO-3: halves of a split backward */
    double tail_s;                 /* seconds of reductions after the last backward */
    double regather_s; /* first gather of a backward, exposed after another backward */
    double weight_s;   /* ZeRO-2, ZeRO-3: weight half until its gradients are reduced */
    double reduced_backward_s; /* ZeRO-2: unsplit backward with its reductions */
    /* Reductions that run once per step during the last backward, by
     * ms_step_reduction: what remains of them when it ends (late_s), and the reduction
     * of its last block (last_unit_s). Interference is not included. */
    double late_s[MS_NUM_STEP_REDUCTIONS], last_unit_s[MS_NUM_STEP_REDUCTIONS];
    /* Gathers that start with the step: seconds by which the first forward is longer
     * than without them, and the gather of its first block. */
    double gathering_s, first_gather_s;
} ms_unit_times;

/* One or more equal blocks with their transfers. */
typedef struct ms_moved_unit {
    const ms_block_cost *part; /* costs of one of the equal blocks; NULL: no block */
    double gather_s, reduce_s;
    double count;
} ms_moved_unit;

/* Compute and the transfers behind it, each in sequence: their ends so far. */
typedef struct ms_lane {
    double worked_s, moved_s;
} ms_lane;

typedef struct ms_unit_walk {
    double interference_frac;
    ms_unit_times *out;
    /* previous and current blocks, in the order of a backward */
    ms_moved_unit before, at;
    ms_lane whole, weight; /* backwards of every micro-batch: unsplit, and weight half */
    ms_lane last_weight;   /* last weight half (W), with reductions over dp_replicate */
    /* seconds of reductions of the last backward that run behind its compute, awaited by
     * no gather */
    double pending_reduce_s;
    ms_lane last[MS_NUM_STEP_REDUCTIONS];
    /* gathers at the start of the step, from the end of the forward backwards */
    ms_lane gathers;
} ms_unit_walk;

/* Adds `count` equal blocks on the way from the last block to the first; `moved` has
 * the gather and reduction that run for each. */
void ms_unit_walk_pass(ms_unit_walk *walk, const ms_block_cost *part,
                       const ms_block_cost *moved, double count);
void ms_unit_walk_end(ms_unit_walk *walk);

#endif
