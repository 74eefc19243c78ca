/* What the rows of collective algorithms are written with: the setting of a law, and the
 * ways along which bytes are put on links. */
#ifndef MS_COSTMODEL_COST_COLLECTIVE_PRIV_H
#define MS_COSTMODEL_COST_COLLECTIVE_PRIV_H

#include "costmodel/cost/collective_cost.h"
#include "costmodel/cost/flows.h"

/* ---- laws (collective_cost.c) ---- */

/* A collective over one group, resolved. Ranks are doubles because all arithmetic with
 * them is. */
typedef struct ms_law_setting {
    ms_collective collective;
    double ranks;     /* n */
    double per_node;  /* p: ranks that share an innermost domain */
    double narrowest; /* where they are fewest */
    double nodes;     /* innermost domains, rounded up */
    int tier;
    const ms_span *span;
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_network_profile *network; /* NULL inside one domain */
    const ms_torus_span *torus;        /* NULL: the innermost level is no torus */
    /* listed rate at which a rank sends to its ranks of the innermost level */
    double link_bytes_per_s;
    /* per GPU over the slowest level the group crosses; 0 inside one domain */
    double nic_bytes_per_s;
    double wire_frac; /* of an all-to-all's copies between domains */
    bool by_kernels;  /* an all-to-all of tokens, by kernels that write to other ranks */
} ms_law_setting;

/* Adds an algorithm whose ramp has no limit. */
void ms_law_add(ms_collective_law *law, ms_algorithm algorithm, double alpha_s,
                double beta_s_per_byte, double ramp);
/* Adds an algorithm between nodes, whose ramp ends where NCCL has left LL for Simple. */
void ms_law_add_between_nodes(ms_collective_law *law, ms_algorithm algorithm,
                              double alpha_s, double beta_s_per_byte, double ramp);
/* Whether the ranks of a node are reduced in its switch. */
bool ms_law_reduces_in_switch(const ms_law_setting *s);
/* Bytes per second of one rank that a reduction in the switch reaches (NVLink SHARP). It
 * cannot carry more than twice the link: each rank sends and receives once. */
double ms_law_in_switch_rate(const ms_law_setting *s);
/* What a rank keeps counts half a step through a switch, and a whole one beside the slow
 * wires of a mesh. */
double ms_law_own_step(const ms_law_setting *s);

/* ---- loads (flows.c) ---- */

/* Ranks of one domain, neighbours in the group. */
typedef struct ms_domain_ranks {
    const long *ranks;
    long num;
} ms_domain_ranks;
/* GPUs of a domain of the innermost level. */
long ms_load_domain_size(const ms_link_load *load);
/* Those that begin at index `first` of the flow's ranks. */
ms_domain_ranks ms_flow_domain(const ms_link_load *load, const ms_flow *flow, long first);

void ms_load_route(ms_link_load *load, long from, long to, double bytes);
/* Half of the bytes upwards and half downwards where a torus has two ways. */
void ms_load_both_ways(ms_link_load *load, long from, long to, double bytes);
/* Each rank sends `bytes` to the others of its domain in the way of a ring. */
void ms_load_inside(ms_link_load *load, ms_domain_ranks domain, double bytes);
/* `bytes` from one domain to another: every sender has the same share, every receiver
 * too. */
void ms_load_crossing(ms_link_load *load, ms_domain_ranks from, ms_domain_ranks to,
                      double bytes);

#endif
