/* Bytes that one collective puts on each link of a fabric, by its algorithm. */
#ifndef MS_COSTMODEL_COST_FLOWS_H
#define MS_COSTMODEL_COST_FLOWS_H

#include "costmodel/cost/collective_algorithm.h"
#include "topo/fabric.h"

/* A sparse sum of bytes per link of a fabric, reused from call to call. */
typedef struct ms_link_load {
    const ms_fabric *fabric;
    double *bytes;    /* (num_links); 0 where nothing was added */
    double wire_frac; /* share of all-to-all bytes sent between domains */
    int num_loaded;   /* links with bytes, in the order of first use */
    int *loaded;      /* (num_links) */
    long *scratch;    /* (num_gpus) */
} ms_link_load;
ms_link_load ms_link_load_open(ms_arena *arena, const ms_fabric *fabric);
void ms_link_load_clear(ms_link_load *load);

/* Adds the bytes of a collective on each link, by its algorithm's row
 * (costmodel/cost/collective_algorithm.h): nothing for one rank or no bytes. */
void ms_flows_add(ms_link_load *load, ms_algorithm algorithm, const ms_flow *flow);

#endif
