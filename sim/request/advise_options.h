/* Options by which commands that predict a plan also advise what to change. */
#ifndef MS_SIM_REQUEST_ADVISE_OPTIONS_H
#define MS_SIM_REQUEST_ADVISE_OPTIONS_H

#include "sim/explain/advise.h"
#include "sim/request/memory_options.h"

typedef struct ms_advise_options {
    bool advise;
    ms_opt_integer top;
    ms_memory_options memory;
} ms_advise_options;

/* Options that fill a ms_advise_options, --min-fit and --headroom included. */
extern const ms_option ms_advise_option_table[];

/* Advice on a plan if --advise is given, defaults noted; *out is NULL otherwise.
 * MS_EINPUT for options of the advice without --advise, or a wrong memory rule. */
ms_status ms_advise_options_apply(ms_ctx *cx, const ms_advise_options *options,
                                  ms_workload *workload, const ms_plan *plan,
                                  const ms_advice **out);

/* The number of changes that text lists. */
int ms_advise_options_rows(const ms_advise_options *options);

#endif
