/* Overlap of a rank's compute stream with communication on a second stream (gathers of
 * parameters, reductions of gradients). Kernels lose the stack's interference fraction
 * meanwhile; communication of both streams on the same links gets half of the bandwidth
 * each (docs/formulas 4.3). */
#ifndef MS_SIM_STEP_OVERLAP_H
#define MS_SIM_STEP_OVERLAP_H

#include "sim/step/links.h"

/* Seconds by which busy_s of work, contended_s of it communication on the same links,
 * grow when overlapped with comm_s of communication on the second stream. */
double ms_slowed_s(double interference_frac, double busy_s, double contended_s,
                   double comm_s);
/* Seconds until the work and the overlapped communication are both done. */
double ms_overlap_s(double interference_frac, double busy_s, double contended_s,
                    double comm_s);

/* Shares of a rank's bandwidth that a collective uses while it runs: on the links
 * inside the innermost domain, and on the links that leave it. */
typedef struct ms_link_share {
    double inner_frac, outer_frac;
} ms_link_share;

ms_link_share ms_link_share_of(const ms_workload *workload, const ms_span *span,
                               ms_collective collective, double size_bytes,
                               double seconds);
/* Share of the time of collective `a` that is lost to the overlapped collective `b`: 0
 * where the links have enough bandwidth for both, 1 where each fills the same links. */
double ms_contended_frac(ms_link_share a, ms_link_share b);

#endif
