/* Whether a graph of tasks is well formed. */
#ifndef MS_TESTS_SUPPORT_GRAPHS_H
#define MS_TESTS_SUPPORT_GRAPHS_H

#include "sim/engine/graph.h"

/* Every task waits only for earlier ones, and indices lie in range. */
bool ms_graph_is_ordered(const ms_graph *graph);

#endif
