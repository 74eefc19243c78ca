/* Algorithms of collectives (ring, tree, ...), one table row each: which collectives use
 * the algorithm, its cost law, its bytes on links, and the share that leaves the domain.
 * Each row is defined in collective_<name>.c. */
#ifndef MS_COSTMODEL_COST_COLLECTIVE_ALGORITHM_H
#define MS_COSTMODEL_COST_COLLECTIVE_ALGORITHM_H

#include "costmodel/tensor/collective.h"
#include "topo/mesh.h"

typedef enum ms_algorithm {
    MS_ALGORITHM_NONE, /* group of one rank, or algorithm not known */
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

/* One collective of `size_bytes` (as for ms_collective_s) over ranks in group order. */
typedef struct ms_flow {
    ms_collective collective;
    const long *ranks;
    long num_ranks;
    double size_bytes;
} ms_flow;

typedef struct ms_algorithm_row {
    const char *name, *alias; /* names in measured tables; alias NULL: none */
    unsigned collectives;     /* bits 1 << ms_collective that use the algorithm */
    bool in_switch;           /* the switch of a domain may reduce (NVLink SHARP) */
    /* Adds the algorithm to the cost law of a collective, if the network allows it. */
    void (*add_law)(struct ms_collective_law *law, const struct ms_law_setting *setting);
    /* Adds the bytes that a collective over at least two ranks moves over each link. */
    void (*add_loads)(struct ms_link_load *load, const ms_flow *flow);
    /* ms_algorithm_nic_frac over several domains; NULL: used inside one domain only */
    double (*nic_frac)(double ranks, double per_domain);
} ms_algorithm_row;

extern const ms_algorithm_row ms_algorithm_ring, ms_algorithm_tree, ms_algorithm_nvls,
    ms_algorithm_direct, ms_algorithm_send;

/* Definition of an algorithm; not for MS_ALGORITHM_NONE. */
const ms_algorithm_row *ms_algorithm_row_of(ms_algorithm algorithm);
/* Name of an algorithm, "ring" ...; "" for MS_ALGORITHM_NONE. */
const char *ms_algorithm_name(ms_algorithm algorithm);
/* Finds an algorithm by name or alias; false if there is none. */
bool ms_algorithm_parse(const char *text, ms_algorithm *out);

/* Share of the sent bytes that leave their innermost domain, mean over a group of n
 * ranks, p in each of N domains; 0 inside one domain. Ring: N of n links cross; tree: N -
 * 1 of n - 1 edges; all-to-all: n - p of n - 1 peers are outside; chain of sends: N - 1
 * of n - 1 hops, closed as a ring. */
double ms_algorithm_nic_frac(ms_algorithm algorithm, const ms_span *span);

#endif
