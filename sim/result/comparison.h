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
    /* Kinds of nodes, largest difference first. A prediction has no nodes: compared with
     * a run that has the same predicted step time, it gets the predicted seconds by kind
     * that the run's file contains. */
    int num_nodes;
    const ms_compared_node *nodes;
    /* Step time of a and of b that belongs to no kind of node. The differences of `nodes`
     * and of `rest` sum to the difference of the step times. */
    ms_compared_node rest;
    /* a (or b) is a prediction whose seconds by kind come from b (or a), a run */
    bool a_is_predicted_by_b, b_is_predicted_by_a;
} ms_comparison;

/* Compares two results; the comparison lives in the arena. */
ms_comparison ms_comparison_make(ms_arena *arena, const ms_result *a, const ms_result *b);

/* Seconds of a kind of node in result b minus those in a; an absent value counts as 0. */
double ms_compared_difference_s(const ms_compared_node *node);

#endif
