/* Shared by the files of the fabric: where the links of each kind begin, and routes
 * inside a domain of the innermost level. */
#ifndef MS_TOPO_FABRIC_PRIV_H
#define MS_TOPO_FABRIC_PRIV_H

#include "topo/fabric.h"
#include "topo/torus.h"

typedef struct ms_fabric_details {
    /* GPUs in a domain of the level; all of them at the outermost */
    long domain[MS_MAX_LEVELS];
    long rails[MS_MAX_LEVELS]; /* at least 1 */
    int first_inner;           /* ports, wires of a mesh or of a torus */
    int first_nic;
    long gpus_per_nic;
    int first_uplink[MS_MAX_LEVELS]; /* -1: the level has none */
    /* torus */
    ms_torus torus;
    long positions; /* of one domain */
    /* [(domain * positions + position) * 6 + dim * 2 + up]; -1: no wire there */
    const int *torus_link;
} ms_fabric_details;

const ms_fabric_details *ms_fabric_details_of(const ms_fabric *fabric);

/* Dimension order, the short way round each ring; where both ways are equally long,
 * upwards or downwards. Both GPUs in one domain. Returns how many links. */
int ms_torus_route(const ms_fabric_details *d, long from, long to, bool upwards,
                   int *route);

#endif
