/* Folder sim/result: results of commands read back and compared; nothing is predicted.
 *
 * Comparison of two results (prediction, simulation, run or trace) of one plan: where
 * their step times differ, by kind of node (a named kernel or transfer). */
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
    /* Kinds of nodes, largest difference first. A prediction, which has no nodes, is
     * given those predicted for the run that it is compared with, if both have the same
     * predicted step time. */
    int num_nodes;
    const ms_compared_node *nodes;
    /* Step time outside all kinds of nodes; with it the differences of all kinds sum to
     * the difference of the step times. */
    ms_compared_node rest;
    /* a's (or b's) seconds by kind are the predicted ones stored in b (or a), a run */
    bool a_is_predicted_by_b, b_is_predicted_by_a;
} ms_comparison;

/* Compares two results; the comparison lives in the arena. */
ms_comparison ms_comparison_make(ms_arena *arena, const ms_result *a, const ms_result *b);

/* Seconds of a kind of node in result b minus those in a; an absent value counts as 0. */
double ms_compared_difference_s(const ms_compared_node *node);

#endif
