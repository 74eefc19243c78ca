/* Bytes that one collective over given ranks moves over each link of a fabric, by its
 * algorithm. */
#ifndef MS_SIM_FLOWS_H
#define MS_SIM_FLOWS_H

#include "costmodel/collective_cost.h"
#include "topo/fabric.h"

/* A sparse sum of bytes per link of a fabric, reused from call to call. */
typedef struct ms_link_load {
    const ms_fabric *fabric;
    double *bytes; /* (num_links): links with bytes, in the order of first use */
    /* share of an all-to-all's bytes between domains that are sent (ms_collective_law) */
    double wire_frac;
    int num_loaded; /* number of links with bytes */
    int *loaded;    /* (num_links) */
    long *scratch;  /* (num_gpus): work memory */
} ms_link_load;
ms_link_load ms_link_load_open(ms_arena *arena, const ms_fabric *fabric);
void ms_link_load_clear(ms_link_load *load);

/* Adds the bytes that one collective of size S (the size that ms_collective_s takes) over
 * the n `ranks`, in the order of the group, moves over each link. `algorithm` is the
 * result of ms_collective_algorithm. With E = (n-1)/n S, for an all-reduce twice that:
 *  ring    inside a domain each rank sends E: through a switch to the next rank; on a
 *          mesh E/(n-1) to each other rank; on a torus along all dims that the group
 *          spans, in proportion to their links, half in each direction of a ring. Over k
 *          domains of p ranks there are p rings, one per rank and NIC: each rank sends
 *          E/p to the next domain and E (p-1)/p inside its own.
 *  tree    two trees of S/2 over the domains (NCCL's double binary tree), S/p per GPU up
 *          and down each edge; a chain inside a domain.
 *  nvls    the switch reads S from each rank and sends each its 1/n of the sum once:
 *          (n+1)/n S out and in.
 *  direct  S/n from each rank to each other (the work of this function grows with the
 *          square of n when the group spans domains or lies on a torus).
 *  send    S from each rank to the next. */
void ms_flows_add(ms_link_load *load, ms_collective collective, const char *algorithm,
                  const long *ranks, long num_ranks, double size_bytes);

#endif
