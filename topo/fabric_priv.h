/* Interface between the fabric*.c files: where the links of each kind start in the
 * list, and routes inside a torus domain. */
#ifndef MS_TOPO_FABRIC_PRIV_H
#define MS_TOPO_FABRIC_PRIV_H

#include "topo/fabric.h"
#include "topo/torus.h"

typedef struct ms_fabric_details {
    /* GPUs in a domain of each level; all GPUs at the outermost level */
    long domain[MS_MAX_LEVELS];
    long rails[MS_MAX_LEVELS]; /* rails of each level; at least 1 */
    int first_inner;           /* index of the first link inside the innermost level */
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

/* Writes the links of a route between two GPUs of one torus domain and returns how
 * many. Routing is in dimension order, the short way round each ring; where both ways
 * are equally long, `upwards` selects the one to higher coordinates. */
int ms_torus_route(const ms_fabric_details *d, long from, long to, bool upwards,
                   int *route);

#endif
