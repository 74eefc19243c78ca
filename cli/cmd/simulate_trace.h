/* Writes the trace of `meshsim simulate`: one file, or several beside each other. */
#ifndef MS_CLI_CMD_SIMULATE_TRACE_H
#define MS_CLI_CMD_SIMULATE_TRACE_H

#include "sim/request/simulate_options.h"

/* Checks, before the simulation, that --trace can be written in --trace-format. MS_EINPUT:
 * not standard output, no trace without tasks of nodes in formats that need them; MS_EIO: a
 * folder that is none or not empty. */
ms_status ms_simulate_trace_check(ms_ctx *cx, const ms_simulate_flags *flags);

/* Writes the trace that the flags ask for, of the ranks that the report shows. MS_EINPUT:
 * more tasks than the format allows. */
ms_status ms_simulate_trace_write(ms_ctx *cx, const ms_simulate_flags *flags,
                                  const ms_simulate_report *report);

#endif
