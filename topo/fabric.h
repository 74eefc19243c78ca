/* The links of a cluster as single pieces, and the route of a message over them: ports of
 * the scale-up network, NICs, and the links between switches of each level, with
 * oversubscription. Built from the levels of ms_cluster. */
#ifndef MS_TOPO_FABRIC_H
#define MS_TOPO_FABRIC_H

#include "base/arena.h"
#include "topo/torus.h"

typedef enum ms_link_kind {
    MS_LINK_PORT, /* a GPU's port into the scale-up switch ("nvlink"), one a direction */
    MS_LINK_PEER, /* a wire between two GPUs of a full mesh */
    /* a wire between neighbours of a torus, one a direction and dimension */
    MS_LINK_TORUS,
    /* of one GPU, or shared by several (nics_per_gpu < 1), one a direction */
    MS_LINK_NIC,
    /* from the switches of a domain to the level above, one a direction; one per rail
     * inside rail-optimised leaves */
    MS_LINK_UPLINK,
    MS_NUM_LINK_KINDS
} ms_link_kind;

typedef struct ms_link {
    ms_link_kind kind;
    int level; /* of the cluster */
    /* away from the GPUs; of peers: to the one with the higher number; of a torus:
     * upwards */
    bool out;
    /* GPU of a port; NIC; sender * GPUs of a domain + receiver's place in it; torus
     * position * MS_MAX_TORUS_DIMS + dim (positions of a domain are its GPUs in order);
     * domain * rails + rail of an uplink */
    long index;
    double bytes_per_s;
} ms_link;

typedef struct ms_fabric {
    const ms_cluster *cluster;
    long num_gpus;
    long num_links;
    const ms_link *links;
    const void *details; /* of the builder */
} ms_fabric;

/* The part of the cluster that ranks 0 .. num_gpus-1 lie on, arranged on the torus of
 * each domain; `torus` NULL: row by row. Lives in the arena. */
const ms_fabric *ms_fabric_make(ms_arena *arena, const ms_cluster *cluster, long num_gpus,
                                const ms_torus *torus);
const ms_torus *ms_fabric_torus(const ms_fabric *fabric);

#define MS_MAX_ROUTE (MS_MAX_TORUS_SIDES + 16)
/* Links from one GPU to another in order; returns how many, 0 when they are the same. A
 * message between NICs of different rails first moves over the scale-up network to the
 * GPU on the receiver's rail (NCCL's PXN) where the cluster has rails. */
int ms_fabric_route(const ms_fabric *fabric, long from, long to, int route[MS_MAX_ROUTE]);

/* The same; on a torus, where both ways round a ring are equally long, upwards as
 * ms_fabric_route goes, or downwards. */
int ms_fabric_route_either(const ms_fabric *fabric, long from, long to, bool upwards,
                           int route[MS_MAX_ROUTE]);

/* "nvlink out 5", "nic in 12", "leaf uplink 3": for people. */
char *ms_fabric_link_name(ms_arena *arena, const ms_fabric *fabric, int link);
/* The links that a name without direction or number, or with them, stands for: "nic",
 * "nic 12", "nic out 12". Returns how many, fills the first `most` of them. 0: no such
 * link. */
int ms_fabric_find(const ms_fabric *fabric, const char *name, int most, int *links);

#endif
