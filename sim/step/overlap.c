#include "sim/step/overlap.h"

#include "base/number.h"

#include <math.h>

double ms_slowed_s(double interference_frac, double busy_s, double contended_s,
                   double comm_s)
{
    double alone_s = busy_s - contended_s;
    double at_once = alone_s + (1.0 - interference_frac) * contended_s;
    if (at_once <= 0.0)
        return ms_min(contended_s, comm_s);
    double lost_frac =
        (interference_frac * alone_s + (1.0 - interference_frac) * contended_s) / at_once;
    double most_s =
        interference_frac < 1.0 ? at_once / (1.0 - interference_frac) : comm_s;
    return lost_frac * ms_min(comm_s, most_s);
}

double ms_overlap_s(double interference_frac, double busy_s, double contended_s,
                    double comm_s)
{
    double slowed_s = ms_slowed_s(interference_frac, busy_s, contended_s, comm_s);
    return ms_max(busy_s + slowed_s, comm_s + ms_min(contended_s, comm_s));
}

/* A ring leaves each network domain at one of the p ranks that it has there, hence
 * crossing = 1 / p. In an all-to-all each rank sends to all ranks outside its domain. */
ms_link_share ms_link_share_of(const ms_workload *workload, const ms_span *span,
                               ms_collective collective, double size_bytes,
                               double seconds)
{
    const ms_cluster *cluster = workload->cluster;
    ms_link_share share = {0.0, 0.0};
    if (span->size <= 1 || size_bytes <= 0.0 || seconds <= 0.0)
        return share;
    double sent_bytes = ms_collective_wire_bytes(collective, span->size, size_bytes);
    double inside = (double)span->per_domain[0], crossing = 1.0 / inside;
    if (span->tier == 0)
        crossing = 0.0;
    else if (collective == MS_ALL_TO_ALL)
        crossing = ((double)span->size - inside) / ((double)span->size - 1.0);
    const ms_network_profile *network =
        ms_profile_network(workload->profile, cluster->network);
    double inner_rate = cluster->levels[0].bandwidth_bytes_per_s;
    share.inner_frac =
        ms_min(1.0, sent_bytes * (1.0 - crossing) / (seconds * inner_rate));
    if (crossing <= 0.0 || network == NULL)
        return share;
    double outer_rate = INFINITY;
    for (int i = 1; i <= span->tier; i++)
        outer_rate = ms_min(outer_rate, cluster->levels[i].bandwidth_bytes_per_s /
                                            cluster->levels[i].oversubscription);
    outer_rate *= network->bandwidth_frac.value;
    share.outer_frac = ms_min(1.0, sent_bytes * crossing / (seconds * outer_rate));
    return share;
}

double ms_contended_frac(ms_link_share a, ms_link_share b)
{
    double inner_frac = a.inner_frac + b.inner_frac - 1.0,
           outer_frac = a.outer_frac + b.outer_frac - 1.0;
    return ms_max(0.0, ms_max(inner_frac, outer_frac));
}
