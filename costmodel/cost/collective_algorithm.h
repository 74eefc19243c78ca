/* Algorithms of collectives, one row each: its collectives, time, bytes on links, and the
 * share that leaves the domain. Rows stand in collective_<name>.c and are listed below
 * and in the table of collective_algorithm.c. */
#ifndef MS_COSTMODEL_COST_COLLECTIVE_ALGORITHM_H
#define MS_COSTMODEL_COST_COLLECTIVE_ALGORITHM_H

#include "costmodel/tensor/collective.h"
#include "topo/mesh.h"

typedef enum ms_algorithm {
    MS_ALGORITHM_NONE, /* a group of one rank, or a relaxed cost law */
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

/* One collective on a fabric, of size S (ms_collective_s), over ranks in group order. */
typedef struct ms_flow {
    ms_collective collective;
    const long *ranks;
    long num_ranks;
    double size_bytes;
} ms_flow;

typedef struct ms_algorithm_row {
    const char *name, *alias; /* names in tables of measurements; alias NULL if none */
    unsigned collectives;     /* bits 1 << ms_collective that it carries out */
    bool in_switch; /* inside a domain its time is that of in-switch reductions */
    /* Adds the algorithm to a cost law (collective_priv.h) if the network allows it. */
    void (*add_law)(struct ms_collective_law *law, const struct ms_law_setting *setting);
    /* Adds the bytes that a flow over at least two ranks moves over each link. */
    void (*add_loads)(struct ms_link_load *load, const ms_flow *flow);
    /* ms_algorithm_nic_frac over several domains; NULL if the algorithm stays in one. */
    double (*nic_frac)(double ranks, double per_domain);
} ms_algorithm_row;

extern const ms_algorithm_row ms_algorithm_ring, ms_algorithm_tree, ms_algorithm_nvls,
    ms_algorithm_direct, ms_algorithm_send;

/* The row of an algorithm other than MS_ALGORITHM_NONE. */
const ms_algorithm_row *ms_algorithm_row_of(ms_algorithm algorithm);
/* Returns the name, "ring" ...; "" for MS_ALGORITHM_NONE. */
const char *ms_algorithm_name(ms_algorithm algorithm);
/* Finds an algorithm by name or alias; false if there is none. */
bool ms_algorithm_parse(const char *text, ms_algorithm *out);

/* The share of bytes on the wire that leave their innermost domain, mean over the ranks
 * of a group of n with p ranks in each of N domains; 0 inside one domain. A ring of n
 * links crosses with N of them; N - 1 of a tree's n - 1 edges lie between domains; in an
 * all-to-all n - p of n - 1 peers are outside; a chain of sends crosses with N - 1 of n -
 * 1 hops, and is a ring if closed. */
double ms_algorithm_nic_frac(ms_algorithm algorithm, const ms_span *span);

#endif
