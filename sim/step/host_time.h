/* Seconds that a step waits for hosts: for kernel launches, and for delayed messages
 * between pipeline stages. docs/formulas 2.5, 3.7.3. */
#ifndef MS_SIM_STEP_HOST_TIME_H
#define MS_SIM_STEP_HOST_TIME_H

#include "sim/step/links.h"
#include "sim/step/workload.h"

/* Number of layers that keep the host as busy as block `block` does: the ratio of the
 * kernels and collectives that each launches in a forward. */
double ms_host_layers(const ms_bill *block, const ms_bill *layer);

/* Host seconds of one layer's forward and backward: the stack's measured value (NaN:
 * none), plus, if the pipeline spans nodes, seconds for tp collectives. */
double ms_host_floor_s(const ms_stack *stack, const ms_bill *layer,
                       bool pipelined_over_nodes, long tp);

/* Host seconds of one pass (ms_bill_pass) of a block that keeps the host as busy as
 * `layers` layers: a third (forward) or two thirds (backward) of the stack's measured
 * value for them, plus launches of experts' kernels; if the stack has no measured value,
 * launches of all kernels. Seconds for collectives are added in both cases. */
double ms_host_s(const ms_workload *workload, const ms_bill *bill, const ms_links *links,
                 double layers, int pass);

/* Seconds by which messages between pipeline stages are delayed: the stack's
 * message_stall_s if all ranks, or those of a tp group, span at least as many nodes as
 * the stack states (stalling_nodes, stalling_tensor_nodes), else 0. */
double ms_stall_s(const ms_stack *stack, const ms_links *links);

#endif
