/* Overlap of a stage's compute with transfers of parameters and gradients block by block
 * (ZeRO-2, ZeRO-3): gathers one block ahead of the compute, reductions behind it, all in
 * sequence on one stream; exact for any order of blocks (docs/formulas 5.5). */
#ifndef MS_SIM_STEP_UNIT_OVERLAP_H
#define MS_SIM_STEP_UNIT_OVERLAP_H

#include "sim/step/block_cost.h"

/* Gradient reductions that run once per step: to shards, then over dp_replicate; or
 * (ZeRO-0) all-reduces of whole gradients. */
typedef enum ms_step_reduction {
    MS_REDUCES_SHARDS,
    MS_REDUCES_WHOLE,
    MS_NUM_STEP_REDUCTIONS
} ms_step_reduction;

/* Durations of a stage's actions, in seconds, if transfers overlap with compute. */
typedef struct ms_unit_times {
    /* ZeRO-3; the last backward also overlaps with reductions over dp_replicate */
    double forward_s, backward_s, last_backward_s;
    double input_s, last_weight_s; /* ZeRO-3: halves (I, last W) of a split backward */
    double tail_s, weight_tail_s;  /* ZeRO-3: reductions after the last backward, W */
    /* ZeRO-3: first gather of a backward, and what the forward before does not hide */
    double regather_s, late_gather_s;
    double weight_s; /* ZeRO-2, ZeRO-3: weight half with its gradient reductions */
    double reduced_backward_s; /* ZeRO-2: unsplit backward with its reductions */
    /* [ms_step_reduction], for reductions that run once per step, during the last
     * backward: seconds that they last beyond its end, or beyond the end of the last W;
     * seconds of the reduction of its last block */
    double late_s[MS_NUM_STEP_REDUCTIONS], weight_late_s[MS_NUM_STEP_REDUCTIONS];
    double last_unit_s[MS_NUM_STEP_REDUCTIONS];
    /* first forward, last backward and last W with transfers that run once per step */
    double slowed_forward_s, slowed_backward_s[MS_NUM_STEP_REDUCTIONS],
        slowed_weight_s[MS_NUM_STEP_REDUCTIONS];
    /* Gathers that start with the step: seconds that they add to the first forward;
     * seconds of the gather of that forward's first block. */
    double gathering_s, first_gather_s;
} ms_unit_times;

/* Seconds of one pass of one or more blocks. host_s: the part that waits for the host;
 * contended_s: the part that is communication on the links of the transfers of parameters
 * and gradients. */
typedef struct ms_work {
    double busy_s, host_s, contended_s;
} ms_work;

/* One or more equal units of equal blocks, with the gather and reduction seconds of one. */
typedef struct ms_moved_unit {
    const ms_block_cost *block; /* costs of one of the blocks; NULL: no block */
    double blocks;              /* blocks of a unit */
    double gather_s, regather_s, reduce_s;
    double count; /* units */
} ms_moved_unit;

/* Seconds at which compute of the blocks added so far ends, and their transfers end. */
typedef struct ms_lane {
    double worked_s, moved_s;
} ms_lane;

typedef struct ms_unit_overlap {
    double interference_frac;
    /* Seconds by which transfers of the whole stage slow down its first forward, last
     * backward and last W, over the seconds of these. */
    double slow_forward_frac, slow_backward_frac[MS_NUM_STEP_REDUCTIONS];
    double slow_weight_frac[MS_NUM_STEP_REDUCTIONS];
    ms_unit_times *out;
    /* previous and current blocks, in the order of a backward */
    ms_moved_unit before, at;
    ms_lane whole, weight; /* unsplit backward and weight half (W) of any micro-batch */
    ms_lane last_weight;   /* last micro-batch's W, with dp_replicate reductions */
    /* in the last backward: seconds of reductions left, for which no gather waits */
    double pending_reduce_s;
    ms_lane last[MS_NUM_STEP_REDUCTIONS], last_half[MS_NUM_STEP_REDUCTIONS];
    /* gathers at the start of the step, from the last block to the first */
    ms_lane gathers;
} ms_unit_overlap;

/* Equal blocks, one after the other; `block` has their gather and reduction seconds. */
typedef struct ms_block_group {
    const ms_block_cost *block;
    double count;
} ms_block_group;

/* Adds `count` equal blocks, from a stage's last to its first; their last unit may have
 * fewer blocks than the others. `moved`: a block that has the gather and reduction seconds
 * of each. */
void ms_unit_overlap_pass(ms_unit_overlap *walk, const ms_block_cost *block,
                          const ms_block_cost *moved, double count);
/* Adds a period of `num` groups of equal blocks, `times` times (at least 1), at once. The
 * same period must have been passed just before. Equal to passing them but for rounding. */
void ms_unit_overlap_repeat(ms_unit_overlap *walk, const ms_block_group *groups, int num,
                            double times);
void ms_unit_overlap_end(ms_unit_overlap *walk);

#endif
