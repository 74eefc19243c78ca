/* Slowdown of compute that overlaps with communication on a second stream (gathers of
 * parameters, reductions of gradients). Kernels run slower by the stack's interference
 * fraction; where communication of both streams uses the same links, each stream gets
 * half of the bandwidth (docs/formulas 4.3). */
#ifndef MS_SIM_STEP_OVERLAP_H
#define MS_SIM_STEP_OVERLAP_H

#include "sim/step/links.h"

/* Seconds by which work of busy_s gets longer beside comm_s of communication on a second
 * stream. contended_s: part of busy_s, communication on the second stream's links. */
double ms_slowed_s(double interference_frac, double busy_s, double contended_s,
                   double comm_s);
/* Seconds until busy_s of work and comm_s of communication beside it are both done. */
double ms_overlap_s(double interference_frac, double busy_s, double contended_s,
                    double comm_s);

/* Shares of a rank's bandwidth that a collective uses while it runs: on links inside the
 * innermost network domain, and on links that leave it. */
typedef struct ms_link_share {
    double inner_frac, outer_frac;
} ms_link_share;

ms_link_share ms_link_share_of(const ms_workload *workload, const ms_span *span,
                               ms_collective collective, double size_bytes,
                               double seconds);
/* Share of the time of collective `a` that it loses to collective `b` beside it: 0 if the
 * links have enough bandwidth for both, 1 if each alone fills the same links. */
double ms_contended_frac(ms_link_share a, ms_link_share b);

#endif
