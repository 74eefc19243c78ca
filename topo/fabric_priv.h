/* Interface between fabric*.c: where each kind of links starts, routes in a torus. */
#ifndef MS_TOPO_FABRIC_PRIV_H
#define MS_TOPO_FABRIC_PRIV_H

#include "topo/fabric.h"
#include "topo/torus.h"

typedef struct ms_fabric_details {
    /* GPUs in a domain of each level; all GPUs at the outermost level */
    long domain[MS_MAX_LEVELS];
    long rails[MS_MAX_LEVELS]; /* rails of each level; at least 1 */
    int first_inner; /* [(domain * positions + position) * 6 + dimension * 2 + upwards]: link; -1: none */
    int first_nic;
    long gpus_per_nic; /* GPUs that share one NIC; at least 1 */
    /* index of the first uplink of each level; -1: the level has none */
    int first_uplink[MS_MAX_LEVELS];
    /* The members below are set if the innermost level is a torus. */
    ms_torus torus; /* the box of one domain */
    long positions; /* positions of one domain's box */
    /* index of the link at [(domain * positions + position) * 6 + dimension * 2 +
     * upwards]; -1: none, at the end of an open dimension */
    const int *torus_link;
} ms_fabric_details;

const ms_fabric_details *ms_fabric_details_of(const ms_fabric *fabric);

/* Writes a route within a torus domain and returns its length: in dimension order, the
 * short way round each ring, `upwards` where both are equal. */
int ms_torus_route(const ms_fabric_details *d, long from, long to, bool upwards,
                   int *route);

#endif
