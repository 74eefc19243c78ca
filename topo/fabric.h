/* The fabric of a cluster: every single link between GPUs and switches, and the route
 * of a message over them. Links are ports of the scale-up network, direct links between
 * GPUs, NICs, and the uplinks between the switches of consecutive levels, reduced by
 * oversubscription. It is built from the levels of ms_cluster. */
#ifndef MS_TOPO_FABRIC_H
#define MS_TOPO_FABRIC_H

#include "base/arena.h"
#include "topo/torus.h"

typedef enum ms_link_kind {
    /* port of a GPU into the scale-up switch ("nvlink"), one per direction */
    MS_LINK_PORT,
    MS_LINK_PEER, /* link between two GPUs of a full mesh, one per direction */
    /* link between neighbours of a torus, one per direction and dimension */
    MS_LINK_TORUS,
    /* NIC of one GPU, or of several that share it (nics_per_gpu < 1), one link per
     * direction */
    MS_LINK_NIC,
    /* link from the switches of a domain to the level above, one per direction, and one
     * per rail inside rail-optimised leaves */
    MS_LINK_UPLINK,
    MS_NUM_LINK_KINDS
} ms_link_kind;

/* One link in one direction. */
typedef struct ms_link {
    ms_link_kind kind;
    int level; /* index of the level in the cluster */
    /* direction, true: away from the GPUs; to the GPU with the higher number for
     * MS_LINK_PEER; towards higher coordinates for MS_LINK_TORUS */
    bool out;
    /* Number of the link among those of its kind, level and direction: the GPU of a
     * port; the NIC; sender * GPUs per domain + receiver's place in the domain for
     * MS_LINK_PEER; position * MS_MAX_TORUS_DIMS + dimension for MS_LINK_TORUS
     * (positions number the boxes of all domains one after the other); domain * rails +
     * rail for an uplink. */
    long index;
    double bytes_per_s;
} ms_link;

typedef struct ms_fabric {
    const ms_cluster *cluster;
    long num_gpus;
    long num_links;
    const ms_link *links;
    const void *details; /* ms_fabric_details, private to topo/fabric*.c */
} ms_fabric;

/* Builds the links between GPUs 0 .. num_gpus-1 of the cluster, in the arena, with the
 * ranks of each torus domain arranged as `torus` determines; NULL: row by row. */
const ms_fabric *ms_fabric_make(ms_arena *arena, const ms_cluster *cluster, long num_gpus,
                                const ms_torus *torus);
/* The arrangement of ranks in each torus domain; all zeros if the innermost level is no
 * torus. */
const ms_torus *ms_fabric_torus(const ms_fabric *fabric);

/* Limit of the links of one route. */
#define MS_MAX_ROUTE (MS_MAX_TORUS_SIDES + 16)
/* Writes the links that a message passes from one GPU to another, in order, and returns
 * how many; 0 if the GPUs are the same. Between different rails a message first moves
 * over the scale-up network to the GPU of its domain that is on the receiver's rail
 * (PXN of NCCL), if that GPU exists. */
int ms_fabric_route(const ms_fabric *fabric, long from, long to, int route[MS_MAX_ROUTE]);

/* Like ms_fabric_route, except that on a torus `upwards` selects the direction where
 * both ways round a ring are equally long; ms_fabric_route goes upwards (to higher
 * coordinates). */
int ms_fabric_route_either(const ms_fabric *fabric, long from, long to, bool upwards,
                           int route[MS_MAX_ROUTE]);

/* The name of a link for people: "nvlink out 5", "nic in 12", "leaf uplink out 3". */
char *ms_fabric_link_name(ms_arena *arena, const ms_fabric *fabric, int link);
/* Finds the links that a name stands for: "nic" (all NICs), "nic 12" (both directions),
 * "nic out 12". Writes the first `most` of them and returns how many there are; 0: no
 * such link. */
int ms_fabric_find(const ms_fabric *fabric, const char *name, int most, int *links);

#endif
