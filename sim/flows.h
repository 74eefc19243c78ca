/* What a collective puts on the links of a fabric: bytes per link of one collective over
 * the given ranks, by its algorithm. */
#ifndef MS_SIM_FLOWS_H
#define MS_SIM_FLOWS_H

#include "costmodel/collective_cost.h"
#include "topo/fabric.h"

/* A sparse sum of bytes per link of a fabric, reused from call to call. */
typedef struct ms_link_load {
    const ms_fabric *fabric;
    double *bytes; /* (num_links); 0 where nothing was added */
    /* of an all-to-all's bytes between domains that are sent (ms_collective_law) */
    double wire_frac;
    int num_loaded; /* links with bytes, in the order of first use */
    int *loaded;    /* (num_links) */
    long *scratch;  /* (num_gpus) */
} ms_link_load;
ms_link_load ms_link_load_open(ms_arena *arena, const ms_fabric *fabric);
void ms_link_load_clear(ms_link_load *load);

/* Adds the bytes that one collective of size S (as ms_collective_s takes it) over
 * `ranks`, in the order of the group, moves over each link. `algorithm`: its name as
 * ms_collective_algorithm tells it. With E = (n-1)/n S, of an all-reduce twice that:
 *  ring    in a domain each rank sends E: through a switch to the next; on a
 *          mesh E/(n-1) to each; on a torus along all dims that the group spans, in
 *          proportion to their wires, half each way round a ring. Over k domains of p
 *          ranks there are p rings, one a rank and NIC: each rank sends
 *          E/p to the next domain and E (p-1)/p inside.
 *  tree    two trees of S/2 over the domains (NCCL's double binary tree), S/p a
 *          GPU up and down each edge; a chain inside.
 *  nvls    each rank's S is read by the switch, its 1/n of the sum sent once:
 *          (n+1)/n S out and in.
 *  direct  S/n from each to each (time grows with the square of n when the group spans
 *          domains or lies on a torus).
 *  send    S from each rank to the next. */
void ms_flows_add(ms_link_load *load, ms_collective collective, const char *algorithm,
                  const long *ranks, long num_ranks, double size_bytes);

#endif
