/* meshsim explain of a plan. */
#ifndef MS_CLI_CMD_EXPLAIN_PLAN_H
#define MS_CLI_CMD_EXPLAIN_PLAN_H

#include "cli/options/advise_options.h"
#include "cli/options/commands.h"
#include "cli/options/plan_options.h"

typedef struct ms_explain_plan_options {
    bool collectives, tensors, coefficients,
        questions; /* parts to explain; none set: all parts, in short */
    bool types;    /* explain local SPMD types; excludes all other questions */
    const char *block;
    ms_opt_integer rank;
    ms_advise_options advise;
} ms_explain_plan_options;

extern const ms_option ms_explain_plan_table[];

/* Explains a plan as text or JSON, also one that does not fit, which returns MS_ENOFIT.
 * With `types` MS_ECHECK when a layer program is illegal. */
ms_status ms_explain_plan(ms_ctx *cx, const ms_args *args,
                          const ms_explain_plan_options *o, ms_plan_options *options);

#endif
