/* The same answers as sim/engine/maxmin.h and sim/engine/event.h by the simplest means: everything anew
 * in every round. */
#ifndef MS_TESTS_SUPPORT_NAIVE_ENGINE_H
#define MS_TESTS_SUPPORT_NAIVE_ENGINE_H

#include "sim/engine/event.h"
#include "sim/engine/maxmin.h"

void ms_naive_maxmin(const ms_maxmin_problem *problem, double *rate);

/* Fills end_s (1 + num_tasks). */
void ms_naive_event_run(const ms_graph *graph, const ms_event_options *options,
                        ms_arena *arena, double *end_s);

#endif
