/* Shared by the algorithms of collectives: inputs of cost laws, bytes on links. */
#ifndef MS_COSTMODEL_COST_COLLECTIVE_PRIV_H
#define MS_COSTMODEL_COST_COLLECTIVE_PRIV_H

#include "costmodel/cost/collective_cost.h"
#include "costmodel/cost/flows.h"

/* ---- laws (collective_cost.c) ---- */

/* Inputs of a collective's cost law: group, cluster, profile. Counts are double. */
typedef struct ms_law_setting {
    ms_collective collective;
    double ranks;     /* n: ranks of the group */
    double per_node;  /* p: ranks of the group per node (mean, rounded up) */
    double narrowest; /* fewest ranks that the group has in one of its nodes */
    double nodes;     /* nodes of the group: ranks / per_node, rounded up */
    int tier;
    const ms_span *span;
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_network_profile *network; /* NULL: the group is inside one node */
    const ms_torus_span *torus;        /* NULL if the innermost level is no torus */
    double link_bytes_per_s;           /* usable link rate of a rank in its domain */
    double nic_bytes_per_s;            /* rate out of the node; 0: group in one node */
    double wire_frac;                  /* share of token copies sent between nodes */
    bool by_kernels;                   /* all-to-all of tokens: kernels write to peers */
} ms_law_setting;

/* Adds an algorithm to a cost law; its ramp (sqrt) term has no limit. */
void ms_law_add(ms_collective_law *law, ms_algorithm algorithm, double alpha_s,
                double beta_s_per_byte, double ramp);
/* Adds an algorithm between nodes to a cost law; limited ramp term (LL to Simple). */
void ms_law_add_between_nodes(ms_collective_law *law, ms_algorithm algorithm,
                              double alpha_s, double beta_s_per_byte, double ramp);
/* Whether an all-reduce over nodes first reduces in the switch of each node. */
bool ms_law_reduces_in_switch(const ms_law_setting *s);
/* Bytes per second and rank of in-switch reductions (NVLink SHARP), at most twice the
 * link rate: each rank sends and receives once. */
double ms_law_in_switch_rate(const ms_law_setting *s);
/* Steps that a ring saves since a rank keeps its own part: 1 on a full mesh, else 1/2. */
double ms_law_own_step(const ms_law_setting *s);

/* Share of a chain's bytes that cross domains: N - 1 of n - 1 hops for N domains. */
double ms_chain_nic_frac(double ranks, double per_domain);

/* ---- loads (flows.c) ---- */

/* Ranks of one innermost domain, consecutive in a group. */
typedef struct ms_domain_ranks {
    const long *ranks;
    long num;
} ms_domain_ranks;
/* Number of GPUs in an innermost domain of the fabric. */
long ms_load_domain_size(const ms_link_load *load);
/* The flow's consecutive ranks, from index `first` on, that share a domain. */
ms_domain_ranks ms_flow_domain(const ms_link_load *load, const ms_flow *flow, long first);

void ms_load_route(ms_link_load *load, long from, long to, double bytes);
/* Adds `bytes` from one GPU to another to links; on a torus ring half goes each way
 * round. */
void ms_load_both_ways(ms_link_load *load, long from, long to, double bytes);
/* Adds the bytes of a ring inside a domain, in which each rank sends `bytes`. */
void ms_load_inside(ms_link_load *load, ms_domain_ranks domain, double bytes);
/* Adds `bytes` from one domain to another, divided evenly over senders and receivers. */
void ms_load_crossing(ms_link_load *load, ms_domain_ranks from, ms_domain_ranks to,
                      double bytes);

#endif
