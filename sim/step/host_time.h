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
 * launches of all kernels, or of all operations where nothing fuses them. Seconds for
 * collectives are added in both cases. A block that is replayed as a CUDA graph costs
 * the replay instead, plus the launches of experts that the graph leaves out; 0 if the
 * whole step is one graph. [2.5.1] of docs/formulas. */
double ms_host_s(const ms_workload *workload, const ms_bill *bill, const ms_links *links,
                 double layers, int pass);

/* Number of calls by which the host starts a pass of a block: kernels and collectives, or
 * operations, or replays of a graph (0: the whole step is one graph). */
double ms_host_launches(const ms_workload *workload, const ms_bill *bill, int pass);

/* Seconds by which messages between pipeline stages are delayed: the stack's
 * message_stall_s if all ranks, or those of a tp group, span at least as many nodes as
 * the stack states (stalling_nodes, stalling_tensor_nodes), else 0. */
double ms_stall_s(const ms_stack *stack, const ms_links *links);

#endif
