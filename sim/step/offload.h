/* Seconds of copies between device and host memory for what a plan keeps in host memory,
 * and of an optimizer that runs on the host. docs/formulas 4.5. */
#ifndef MS_SIM_STEP_OFFLOAD_H
#define MS_SIM_STEP_OFFLOAD_H

#include "sim/step/links.h"
#include "sim/step/workload.h"

/* MS_EINPUT if the plan keeps anything in host memory and its cluster states no link to
 * the host, or if the optimizer is to run there and the cluster states no bandwidth of
 * host memory, or the stack has no such optimizer. */
ms_status ms_offload_check(ms_ctx *cx, const ms_workload *workload, const ms_plan *plan);

/* Seconds of one rank's copies of `bytes` to host memory, or back, while all ranks of its
 * node copy. The two directions do not slow each other. 0 if the link is not known. */
double ms_host_copy_s(const ms_workload *workload, const ms_links *links, double bytes);

/* Seconds in which a pass (ms_bill_pass) of a block copies activations: forward to host
 * memory, backward from there. Copies of a block run beside the compute of the blocks
 * next to it, so that a block takes at least these seconds. */
double ms_host_activations_s(const ms_workload *workload, const ms_bill *bill,
                             const ms_links *links);

/* Seconds in which backward copies `num_params` reduced gradients to host memory, after
 * their reduction, also to add them to those of earlier micro-batches, which the copy back
 * hides; 0 unless the stack offloads_gradients and the optimizer runs there. */
double ms_host_gradients_s(const ms_workload *workload, const ms_links *links,
                           double num_params);

/* Seconds of a rank's optimizer for its own `num_params` parameters. States in host
 * memory pass through the device in parts, both ways at once, beside the update. On the
 * host: gradients down, unless backward has copied them, update by the CPUs, which the
 * ranks of a node share, and parameters up, one after the other. Source: ZeRO-Offload
 * (Ren et al. 2021), sections 4 and 5. */
double ms_states_update_s(const ms_workload *workload, const ms_links *links,
                          double num_params);

#endif
