/* Algorithms of collectives: one row each says which collectives it carries out, how long
 * they take, what they put on links and how much leaves the domain. A row stands in the
 * algorithm's own file, costmodel/collective_<name>.c; its declaration below and its place
 * in the table of collective_algorithm.c make it known. */
#ifndef MS_COSTMODEL_COST_COLLECTIVE_ALGORITHM_H
#define MS_COSTMODEL_COST_COLLECTIVE_ALGORITHM_H

#include "costmodel/tensor/collective.h"
#include "topo/mesh.h"

typedef enum ms_algorithm {
    MS_ALGORITHM_NONE, /* no algorithm: a group of one rank, a relaxed law */
    MS_ALGORITHM_RING,
    MS_ALGORITHM_TREE,
    MS_ALGORITHM_NVLS,
    MS_ALGORITHM_DIRECT,
    MS_ALGORITHM_SEND,
    MS_NUM_ALGORITHMS
} ms_algorithm;

struct ms_collective_law;
struct ms_law_setting;
struct ms_link_load;

/* One collective on a fabric: of size S, as ms_collective_s takes it, over `ranks` in the
 * order of the group. */
typedef struct ms_flow {
    ms_collective collective;
    const long *ranks;
    long num_ranks;
    double size_bytes;
} ms_flow;

typedef struct ms_algorithm_row {
    const char *name, *alias; /* in tables of measurements; alias NULL: no other name */
    unsigned collectives;     /* bits 1 << ms_collective: those it carries out */
    bool in_switch; /* its time inside a domain is that of reductions in the switch */
    /* Adds the algorithm to a law (collective_priv.h) where the network allows it. */
    void (*add_law)(struct ms_collective_law *law, const struct ms_law_setting *setting);
    /* Adds the bytes that the flow, over at least two ranks, moves over each link. */
    void (*add_loads)(struct ms_link_load *load, const ms_flow *flow);
    /* ms_algorithm_nic_frac over several domains; NULL: it stays in one. */
    double (*nic_frac)(double ranks, double per_domain);
} ms_algorithm_row;

extern const ms_algorithm_row ms_algorithm_ring, ms_algorithm_tree, ms_algorithm_nvls,
    ms_algorithm_direct, ms_algorithm_send;

/* Not of MS_ALGORITHM_NONE. */
const ms_algorithm_row *ms_algorithm_row_of(ms_algorithm algorithm);
/* "ring" ...; "" for MS_ALGORITHM_NONE. */
const char *ms_algorithm_name(ms_algorithm algorithm);
/* By name or alias; false: there is none of that name. */
bool ms_algorithm_parse(const char *text, ms_algorithm *out);

/* The share of the bytes on the wire that leave their domain of the innermost level, mean
 * over the ranks of a group of n with p ranks in each of N domains. A ring of n links
 * crosses with N of them; a tree has N - 1 of its n - 1 edges between domains; of an
 * all-to-all n - p of n - 1 peers are outside; a chain of sends crosses with N - 1 of n
 * - 1 hops, and is a ring when it is closed. Inside one domain: 0. */
double ms_algorithm_nic_frac(ms_algorithm algorithm, const ms_span *span);

#endif
