/* What a step waits for hosts: launches of kernels, and messages between pipeline stages
 * in runs that stall. docs/formulas 2.5, 3.7.3. */
#ifndef MS_SIM_HOST_H
#define MS_SIM_HOST_H

#include "sim/links.h"
#include "sim/workload.h"

/* How many layers keep the host as busy as the part: by what both launch forward, kernels
 * and collectives. */
double ms_host_layers(const ms_bill *part, const ms_bill *layer);

/* Host time of one layer and micro-batch, forward and backward, by the stack's measured
 * floor and what its tensor-parallel collectives add; NaN: it states none. */
double ms_host_floor_s(const ms_stack *stack, const ms_bill *layer,
                       bool pipelined_over_nodes, long tp);

/* Host time of a pass: the stack's measured floor per layer, a third of it forward, for
 * `layers`; without a floor a launch per kernel. What collectives add by the ranks of
 * their groups is that of the bill's. */
double ms_host_s(const ms_workload *workload, const ms_bill *bill, const ms_links *links,
                 double layers, int pass);

/* Seconds that a message between stages takes more: none, unless the run or its tensor
 * groups lie on as many nodes as in runs that stall. */
double ms_stall_s(const ms_stack *stack, const ms_links *links);

#endif
