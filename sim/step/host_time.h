/* Seconds that a step waits for hosts: for launches of kernels, and for messages
 * between pipeline stages in executions that stall. docs/formulas 2.5, 3.7.3. */
#ifndef MS_SIM_STEP_HOST_TIME_H
#define MS_SIM_STEP_HOST_TIME_H

#include "sim/step/links.h"
#include "sim/step/workload.h"

/* Number of layers that keep the host as busy as the block does, by the number of
 * kernels and collectives that each launches in a forward. */
double ms_host_layers(const ms_bill *part, const ms_bill *layer);

/* Host seconds of one layer and micro-batch, forward and backward: the stack's measured
 * floor plus those of tensor-parallel collectives. NaN if the stack states no floor. */
double ms_host_floor_s(const ms_stack *stack, const ms_bill *layer,
                       bool pipelined_over_nodes, long tp);

/* Host seconds of a pass (ms_bill_pass) over `layers` layers. With the stack's measured
 * floor per layer, a third of it is forward; without one, the pass takes a launch per
 * kernel. Collectives add time by the ranks of their groups. */
double ms_host_s(const ms_workload *workload, const ms_bill *bill, const ms_links *links,
                 double layers, int pass);

/* Seconds by which a stall delays each message between stages: 0 unless the plan or
 * its tensor-parallel groups span as many nodes as the stack states for stalls. */
double ms_stall_s(const ms_stack *stack, const ms_links *links);

#endif
