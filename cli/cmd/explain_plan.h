/* meshsim explain of a plan. */
#ifndef MS_CLI_CMD_EXPLAIN_PLAN_H
#define MS_CLI_CMD_EXPLAIN_PLAN_H

#include "cli/options/commands.h"
#include "sim/request/explain_answer.h"

/* Explains a plan as text or JSON, also one that does not fit, which returns MS_ENOFIT.
 * With `types` MS_ECHECK when a layer program is illegal. */
ms_status ms_explain_plan(ms_ctx *cx, const ms_args *args,
                          const ms_explain_inputs *inputs, ms_plan_options *options);

#endif
