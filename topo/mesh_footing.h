/* How the groups of an axis lie on domains that they do not fill evenly. */
#ifndef MS_TOPO_MESH_FOOTING_H
#define MS_TOPO_MESH_FOOTING_H

#include "topo/mesh.h"

typedef struct ms_footing {
    long num_domains; /* of the group that touches most */
    /* fewest ranks of any group in a domain that does not hold all of it, but for the
     * domain in which the job ends half-way; 0: none */
    long narrowest;
} ms_footing;

/* Of all groups with these modes, of a row-major mesh of `num_ranks`, on domains of
 * `domain` ranks each. */
ms_footing ms_footing_of(const ms_group *group, long num_ranks, long domain);

#endif
