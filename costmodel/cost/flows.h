/* Bytes that one collective puts on each link of a fabric, by its algorithm. */
#ifndef MS_COSTMODEL_COST_FLOWS_H
#define MS_COSTMODEL_COST_FLOWS_H

#include "costmodel/cost/collective_algorithm.h"
#include "topo/fabric.h"

/* Sum of bytes per link of a fabric, sparse, reused from call to call. */
typedef struct ms_link_load {
    const ms_fabric *fabric;
    double *bytes;    /* (num_links); 0: link not used */
    double wire_frac; /* share of token copies sent between domains; 1: all */
    int num_loaded;   /* number of links with bytes */
    int *loaded;      /* links with bytes, in the order of first use */
    long *scratch;    /* (num_gpus) work space of trees */
} ms_link_load;
ms_link_load ms_link_load_open(ms_arena *arena, const ms_fabric *fabric);
void ms_link_load_clear(ms_link_load *load);

/* Adds the bytes that a collective puts on each link; none for one rank or 0 bytes. */
void ms_flows_add(ms_link_load *load, ms_algorithm algorithm, const ms_flow *flow);

#endif
