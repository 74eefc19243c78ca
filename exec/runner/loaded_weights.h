/* A run's file of initial weights, compared with the weights of its model. */
#ifndef MS_EXEC_RUNNER_LOADED_WEIGHTS_H
#define MS_EXEC_RUNNER_LOADED_WEIGHTS_H

#include "exec/runner/job.h"

/* Sets *out to the file of initial weights that ranks read (NULL: none), and
 * outcome->loaded. Where adapters are trained and the file has none, *out is a copy of it
 * with adapters: A with the values that it has without a file, B with 0, so that they
 * change no result at first (Hu et al. 2021, arXiv 2106.09685, section 4.1). Lives in
 * cx->arena. MS_EINPUT: the file has some of the adapters but not all, or adapters that
 * the run does not train. */
ms_status ms_loaded_weights_make(ms_ctx *cx, const ms_job *job, ms_outcome *outcome,
                                 const ms_safe_file **out);

#endif
