/* Max-min fair rates of flows over shared links, by progressive filling. A flow's rate
 * and its largest rate are in bytes per second on the link that the flow loads most; on
 * each of its links the flow takes weight x rate bytes per second. Source of the method:
 * Bertsekas and Gallager, Data Networks, section 6.5.2; data structures as in SimGrid's
 * linear max-min solver (src/kernel/lmm). */
#ifndef MS_SIM_ENGINE_MAXMIN_H
#define MS_SIM_ENGINE_MAXMIN_H

#include "base/arena.h"

typedef struct ms_flow_use {
    int link;
    double weight; /* > 0: bytes per second on the link per unit of the flow's rate */
} ms_flow_use;

typedef struct ms_maxmin_problem {
    int num_links;
    const double *capacity; /* (num_links): bytes per second */
    int num_flows;
    const int *first_use; /* (num_flows + 1): where the uses of a flow start in `uses` */
    const ms_flow_use *uses;
    const double *most; /* (num_flows): largest rate, bytes per second */
} ms_maxmin_problem;

/* Fills the rate of each flow (num_flows), in bytes per second. A flow without a full
 * link gets exactly its largest rate. `scratch` is left as it was. */
void ms_maxmin_solve(const ms_maxmin_problem *problem, ms_arena *scratch, double *rate);

#endif
