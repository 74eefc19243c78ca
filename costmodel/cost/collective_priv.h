/* Shared by the rows of collective algorithms: settings of cost laws, loads on links. */
#ifndef MS_COSTMODEL_COST_COLLECTIVE_PRIV_H
#define MS_COSTMODEL_COST_COLLECTIVE_PRIV_H

#include "costmodel/cost/collective_cost.h"
#include "costmodel/cost/flows.h"

/* ---- laws (collective_cost.c) ---- */

/* A collective over one resolved group; counts are doubles for arithmetic. */
typedef struct ms_law_setting {
    ms_collective collective;
    double ranks;     /* n, in the group */
    double per_node;  /* p: ranks that share an innermost domain */
    double narrowest; /* fewest ranks in a domain */
    double nodes;     /* innermost domains, rounded up */
    int tier;
    const ms_span *span;
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_network_profile *network; /* NULL inside one domain */
    const ms_torus_span *torus;        /* NULL if the innermost level is no torus */
    double link_bytes_per_s;           /* listed rate of a rank inside its domain */
    double nic_bytes_per_s; /* bytes/s per GPU over the slowest level; 0: inside */
    double wire_frac;       /* share of all-to-all copies sent between domains */
    bool by_kernels;        /* all-to-all of tokens by kernels that write to peers */
} ms_law_setting;

/* Adds an algorithm whose ramp has no limit. */
void ms_law_add(ms_collective_law *law, ms_algorithm algorithm, double alpha_s,
                double beta_s_per_byte, double ramp);
/* Adds an algorithm between nodes, whose ramp is limited (NCCL leaves LL for Simple). */
void ms_law_add_between_nodes(ms_collective_law *law, ms_algorithm algorithm,
                              double alpha_s, double beta_s_per_byte, double ramp);
/* Whether the ranks of a node are reduced in its switch. */
bool ms_law_reduces_in_switch(const ms_law_setting *s);
/* Bytes per second of one rank that reductions in the switch reach (NVLink SHARP), at
 * most twice the link rate: each rank sends and receives once. */
double ms_law_in_switch_rate(const ms_law_setting *s);
/* Ring steps that a rank's own data counts: 1/2 through a switch, 1 on a mesh. */
double ms_law_own_step(const ms_law_setting *s);

/* ms_algorithm_nic_frac of a chain: N - 1 of its n - 1 hops cross domains. */
double ms_chain_nic_frac(double ranks, double per_domain);

/* ---- loads (flows.c) ---- */

/* Ranks of one domain, consecutive in the group. */
typedef struct ms_domain_ranks {
    const long *ranks;
    long num;
} ms_domain_ranks;
/* GPUs of an innermost domain. */
long ms_load_domain_size(const ms_link_load *load);
/* The ranks of one domain that begin at index `first` of the flow. */
ms_domain_ranks ms_flow_domain(const ms_link_load *load, const ms_flow *flow, long first);

void ms_load_route(ms_link_load *load, long from, long to, double bytes);
/* Adds bytes between two GPUs, half each way round where a torus ring has two ways. */
void ms_load_both_ways(ms_link_load *load, long from, long to, double bytes);
/* Adds the bytes of a ring inside a domain, of which each rank sends `bytes`. */
void ms_load_inside(ms_link_load *load, ms_domain_ranks domain, double bytes);
/* Adds `bytes` from one domain to another, shared evenly by senders and by receivers. */
void ms_load_crossing(ms_link_load *load, ms_domain_ranks from, ms_domain_ranks to,
                      double bytes);

#endif
