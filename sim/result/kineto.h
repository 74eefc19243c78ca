/* Times of a step from a trace that PyTorch's profiler (Kineto) wrote of one rank. */
#ifndef MS_SIM_RESULT_KINETO_H
#define MS_SIM_RESULT_KINETO_H

#include "sim/result/result_file.h"

/* Whether a trace is Kineto's, not one of this program's own. */
bool ms_kineto_is(ms_ctx *cx, ms_jval root);

/* Reads the mean step between the first and last annotation "ProfilerStep#N" of the host:
 * seconds in which kernels compute, those in which only NCCL's kernels run (exposed), and
 * both by name of kernel as nodes; every moment counts once, so that idle time is the rest.
 * Kernels inside an annotation "Optimizer.step#..." of the GPU are the optimizer's; without
 * one they are compute. NCCL's kernels are told by HTA's patterns (hta/common/types.py).
 * Memory, bubbles and host stay NaN. MS_EINPUT: no steps, no kernels, or kernels of several
 * devices. */
ms_status ms_kineto_read(ms_ctx *cx, ms_jval root, ms_jval events, ms_result *out);

#endif
