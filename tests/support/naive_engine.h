/* Max-min fair rates and event simulation as sim/engine/maxmin.h and sim/engine/event.h
 * define them, by the simplest algorithm: everything is computed anew in every round. */
#ifndef MS_TESTS_SUPPORT_NAIVE_ENGINE_H
#define MS_TESTS_SUPPORT_NAIVE_ENGINE_H

#include "sim/engine/event.h"
#include "sim/engine/maxmin.h"

void ms_naive_maxmin(const ms_maxmin_problem *problem, double *rate);

/* Simulates a graph; end_s (1 + num_tasks) gets the end of each task. */
void ms_naive_event_run(const ms_graph *graph, const ms_event_options *options,
                        ms_arena *arena, double *end_s);

#endif
