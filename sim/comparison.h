/* Two results of one plan, joined: what their steps differ by, and what explains it. */
#ifndef MS_SIM_COMPARISON_H
#define MS_SIM_COMPARISON_H

#include "sim/result_file.h"

typedef struct ms_compared_node {
    const char *kind;
    /* of a step, mean over ranks; NaN: the result has none of the kind */
    double a_s, b_s;
} ms_compared_node;

typedef struct ms_comparison {
    const ms_result *a, *b;
    /* Kinds of nodes, the largest difference first. Where one result has none and the
     * other is a run, the run's own prediction stands in for it if both predict the same
     * step. */
    int num_nodes;
    const ms_compared_node *nodes;
    /* of the step, in no kind: with it the differences of all kinds sum to that of the
     * steps */
    ms_compared_node rest;
    bool a_is_predicted_by_b, b_is_predicted_by_a; /* for the nodes */
} ms_comparison;

/* Lives in the arena. */
ms_comparison ms_comparison_make(ms_arena *arena, const ms_result *a, const ms_result *b);

/* b - a; a side without a value counts as 0. */
double ms_compared_difference_s(const ms_compared_node *node);

#endif
