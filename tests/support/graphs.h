/* Whether a task graph is well formed. */
#ifndef MS_TESTS_SUPPORT_GRAPHS_H
#define MS_TESTS_SUPPORT_GRAPHS_H

#include "sim/engine/graph.h"

/* Whether every task waits for earlier tasks only, and all indices are in range. */
bool ms_graph_is_ordered(const ms_graph *graph);

#endif
