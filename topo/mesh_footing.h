/* The footing of a group: how many ranks it has in each domain of a level, where the
 * groups of an axis do not fill domains evenly. */
#ifndef MS_TOPO_MESH_FOOTING_H
#define MS_TOPO_MESH_FOOTING_H

#include "topo/mesh.h"

typedef struct ms_footing {
    long num_domains; /* domains that the group touching most of them touches */
    /* fewest ranks of any group in a domain that does not hold all of it, not counting
     * the domain in which the job ends half-way; 0: there is no such domain */
    long narrowest;
} ms_footing;

/* The footing of all groups with the modes of `group` in a row-major mesh of num_ranks
 * ranks, on domains of `domain` ranks each. */
ms_footing ms_footing_of(const ms_group *group, long num_ranks, long domain);

#endif
