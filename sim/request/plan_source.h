/* Files that plans start from: plan files, and those of training frameworks. */
#ifndef MS_SIM_REQUEST_PLAN_SOURCE_H
#define MS_SIM_REQUEST_PLAN_SOURCE_H

#include "costmodel/port/port.h"
#include "sim/request/plan_options.h"

/* Reads opts->plan_file: meshsim.plan/1, or a framework's file, which its marks tell
 * (ms_port_format_of_text) and which is imported with the model, cluster, stack, number of
 * GPUs and sequence length of the flags; what it ignored and assumed is noted. MS_EIO;
 * MS_EINPUT at the place in the file. */
ms_status ms_plan_source_load(ms_ctx *cx, const ms_plan_options *opts, ms_plan *out);

#endif
