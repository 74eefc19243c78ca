/* meshsim explain of a plan: its options and what they lead to. */
#ifndef MS_CLI_CMD_EXPLAIN_PLAN_H
#define MS_CLI_CMD_EXPLAIN_PLAN_H

#include "cli/options/commands.h"
#include "cli/options/plan_options.h"

typedef struct ms_explain_plan_options {
    bool collectives, tensors, coefficients, questions; /* none: all of them, in short */
    bool types;                                         /* nothing else then */
    const char *part;
    ms_opt_integer rank;
} ms_explain_plan_options;

/* Fills a ms_explain_plan_options. */
extern const ms_option ms_explain_plan_table[];

/* Explains the plan of the options (or of the file that is the command's word) as text or
 * JSON; one that does not fit too: the status is MS_ENOFIT then. With `types` MS_ECHECK
 * when a program is illegal. */
ms_status ms_explain_plan(ms_ctx *cx, const ms_args *args,
                          const ms_explain_plan_options *o, ms_plan_options *options);

#endif
