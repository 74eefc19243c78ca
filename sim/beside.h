/* Work of a rank beside communication on a stream of its own: gathers of parameters,
 * reductions of gradients. Kernels lose the stack's interference fraction while it runs;
 * communication of the work itself that uses the same links gets half of them, as the
 * other does (docs/formulas 4.3). */
#ifndef MS_SIM_BESIDE_H
#define MS_SIM_BESIDE_H

#include "sim/links.h"

/* What `busy_s` of work, of which `contended_s` is communication on the links of the
 * other stream, takes longer beside `comm_s` of it. */
double ms_slowed_s(double interference_frac, double busy_s, double contended_s,
                   double comm_s);
/* Seconds until both are done. */
double ms_beside_s(double interference_frac, double busy_s, double contended_s,
                   double comm_s);

/* A collective of one group while it moves: shares of what a rank can send over its links
 * inside the innermost domain, and out of it. */
typedef struct ms_link_share {
    double inner_frac, outer_frac;
} ms_link_share;

ms_link_share ms_link_share_of(const ms_workload *workload, const ms_span *span,
                               ms_collective collective, double size_bytes,
                               double seconds);
/* How much of the time of one collective is lost to another that runs beside it: 0 where
 * no link has too little for both, 1 where either fills one. */
double ms_contended_frac(ms_link_share a, ms_link_share b);

#endif
