/* Shared by fabric*.c: where each kind of links starts, and routes in a torus. */
#ifndef MS_TOPO_FABRIC_PRIV_H
#define MS_TOPO_FABRIC_PRIV_H

#include "topo/allocation.h"
#include "topo/fabric.h"
#include "topo/torus.h"

struct ms_fabric_details {
    ms_allocation place;
    int first_inner; /* index of the first link inside the innermost level */
    int first_nic;
    /* index of the first uplink of each level; -1: the level has none */
    int first_uplink[MS_MAX_LEVELS];
    /* torus, positions and torus_link are set only if the innermost level is a torus. */
    ms_torus torus; /* box of one torus domain */
    long positions; /* positions of one domain's box */
    /* link [(domain * positions + position) * 6 + 2 * dimension + upwards]; -1: none */
    const int *torus_link;
};

/* Writes a route within a torus domain and returns its number of links: dimension by
 * dimension, the shorter way round a ring, `upwards` if both ways are equal. */
int ms_torus_route(const ms_fabric_details *d, long from, long to, bool upwards,
                   int *route);

#endif
