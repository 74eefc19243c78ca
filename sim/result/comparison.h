/* Comparison of two results of one plan: the difference of their steps, by kind of
 * node. */
#ifndef MS_SIM_RESULT_COMPARISON_H
#define MS_SIM_RESULT_COMPARISON_H

#include "sim/result/result_file.h"

typedef struct ms_compared_node {
    const char *kind;
    /* seconds per step in results a and b, mean over ranks; NaN if absent */
    double a_s, b_s;
} ms_compared_node;

typedef struct ms_comparison {
    const ms_result *a, *b;
    /* Kinds of nodes, the largest difference first. If one result has no nodes and the
     * other is a run, the run's own prediction stands in, if both predict the same step.
     * */
    int num_nodes;
    const ms_compared_node *nodes;
    /* Step time outside all kinds; with it the differences of all kinds sum to the
     * difference of the steps. */
    ms_compared_node rest;
    /* nodes of one result are those of the other's prediction */
    bool a_is_predicted_by_b, b_is_predicted_by_a;
} ms_comparison;

/* Compares two results; lives in the arena. */
ms_comparison ms_comparison_make(ms_arena *arena, const ms_result *a, const ms_result *b);

/* Seconds of b minus those of a; a side without a value counts as 0. */
double ms_compared_difference_s(const ms_compared_node *node);

#endif
