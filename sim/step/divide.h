/* Layers of pipeline stages on the groups of a mixed cluster: the split of one plan whose
 * predicted step is the shortest of those that fit each stage's memory, and a bound over
 * all splits. docs/formulas 5.8. */
#ifndef MS_SIM_STEP_DIVIDE_H
#define MS_SIM_STEP_DIVIDE_H

#include "sim/step/step.h"

typedef struct ms_division {
    const ms_split *split;
    bool is_limited; /* the fastest split of all exceeds the memory of a stage */
    bool is_slow; /* the fastest split of all takes enough_s; memory is not looked at */
} ms_division;

/* Divides the layers of a plan: from the splits that balance compute and compute with
 * exposed communication, layers move between two stages as long as that makes the step
 * shorter, by replay of `schedule`. Where the result exceeds the memory of a stage, the
 * search begins again with the most layers that each stage can hold. No split fits: the
 * one that exceeds memory least. `pipeline` is complete but for stages and loads, and its
 * split is that of ms_workload_split. The result lives in
 * the arena. */
ms_division ms_divide_layers(const ms_pipeline *pipeline, ms_sharding sharding,
                             const ms_schedule *schedule, ms_arena *arena);

/* Lower bound, in seconds, of the steps with each split of the layers, without optimizer
 * and transfers of parameters and gradients. Rank i of p takes t_i seconds a micro-batch
 * and r_i seconds per unit of the layers' W; of m micro-batches the first comes past the
 * ranks before it, and the last gradient back (whole backwards, one stage a rank):
 *     step >= max_i (m t_i + sum_{j<i} t_j) >= sum_j (m l_j + sum_{i>j} l_i) t_j
 * for shares l >= 0 with sum 1. With m l_j + sum_{i>j} l_i >= a / r_j the bound is a W, plus
 * embedding and head by the same weights. Other schedules: without the sums over ranks. A
 * bound below enough_s is raised as far as no division of whole layers is as fast. */
double ms_divided_bound_s(const ms_pipeline *pipeline, double enough_s);

#endif
