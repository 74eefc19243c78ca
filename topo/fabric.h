/* The fabric of a cluster: the links between GPUs and switches, and routes over them:
 * ports of the scale-up network, direct links between GPUs, NICs, and uplinks between
 * consecutive levels, reduced by oversubscription. */
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
    MS_LINK_NIC,    /* NIC of one or several GPUs, one link per direction */
    MS_LINK_UPLINK, /* link up from a domain's switches, one per direction and rail */
    MS_NUM_LINK_KINDS
} ms_link_kind;

/* One link in one direction. */
typedef struct ms_link {
    ms_link_kind kind;
    int level; /* index of the level in the cluster */
    bool out;  /* true: to the higher GPU (PEER), upwards (TORUS), else away from GPUs */
    /* Number among links of equal kind, level and direction: GPU of a port; NIC; sender *
     * GPUs per domain + receiver's place for MS_LINK_PEER; position over all boxes *
     * MS_MAX_TORUS_DIMS + dimension for MS_LINK_TORUS; domain * rails + rail for an
     * uplink. */
    long index;
    double bytes_per_s;
} ms_link;

typedef struct ms_fabric_details ms_fabric_details;

typedef struct ms_fabric {
    const ms_cluster *cluster;
    long num_gpus;
    long num_links;
    const ms_link *links;
    const ms_fabric_details *details; /* private to topo/fabric*.c */
} ms_fabric;

/* Makes the links of a job's num_gpus GPUs; `torus` places ranks (NULL: row-major). */
const ms_fabric *ms_fabric_make(ms_arena *arena, const ms_cluster *cluster, long num_gpus,
                                const ms_torus *torus);
/* The arrangement of ranks in a torus domain; all zeros if there is none. */
const ms_torus *ms_fabric_torus(const ms_fabric *fabric);

#define MS_MAX_ROUTE (MS_MAX_TORUS_SIDES + 16) /* Limit of the links of one route. */
/* Writes the links from one GPU to another and returns how many. Between rails a message
 * first moves to the GPU of its domain on the receiver's rail (PXN of NCCL). */
int ms_fabric_route(const ms_fabric *fabric, long from, long to, int route[MS_MAX_ROUTE]);

/* ms_fabric_route, with `upwards` to decide where both ways round a torus are equal. */
int ms_fabric_route_either(const ms_fabric *fabric, long from, long to, bool upwards,
                           int route[MS_MAX_ROUTE]);

/* ms_fabric_route without PXN, for rings and trees: out over the sender's NIC, in over
 * the receiver's. Different rails meet at a level without rails, or the last (NCCL's user
 * guide, NCCL_CROSS_NIC). */
int ms_fabric_route_own_nics(const ms_fabric *fabric, long from, long to,
                             int route[MS_MAX_ROUTE]);

/* The name of a link for people: "nvlink out 5", "nic in 12", "leaf uplink out 3". */
char *ms_fabric_link_name(ms_arena *arena, const ms_fabric *fabric, int link);
/* Finds links by name: "nic" (all NICs), "nic 12" (both directions), "nic out 12". Writes
 * up to `most` and returns how many exist. */
int ms_fabric_find(const ms_fabric *fabric, const char *name, int most, int *links);

#endif
