/* How many ranks a group has in each domain, where groups fill domains unevenly. */
#ifndef MS_TOPO_MESH_FOOTING_H
#define MS_TOPO_MESH_FOOTING_H

#include "topo/mesh.h"

typedef struct ms_footing {
    long num_domains; /* most domains that any one group touches */
    /* fewest ranks of any group in one of several domains that it touches; 0: none */
    long narrowest;
} ms_footing;

/* How groups like `group`, all in num_ranks ranks, map to domains of `domain` ranks. */
ms_footing ms_footing_of(const ms_group *group, long num_ranks, long domain);

#endif
