/* The files that a search writes: its report, and the first plan with --save-plan. */
#ifndef MS_CLI_CMD_SEARCH_OUTPUTS_H
#define MS_CLI_CMD_SEARCH_OUTPUTS_H

#include "cli/options/commands.h"
#include "cli/options/output.h"
#include "sim/request/search_request.h"

/* Both output files, opened before the search so that write errors appear at once. */
typedef struct ms_search_outputs {
    ms_output report, plan; /* plan.file is NULL without --save-plan */
} ms_search_outputs;

/* MS_EINPUT if one would replace the other or a file that the plan is read from. */
ms_status ms_search_outputs_check(const ms_search_request *r, const ms_args *args);
/* Opens both; MS_EINPUT if one would replace the other or a file that the plan is read
 * from, MS_EIO. */
ms_status ms_search_outputs_open(const ms_search_request *r, const ms_args *args,
                                 ms_search_outputs *out);
void ms_search_outputs_drop(ms_ctx *cx, ms_search_outputs *out);
/* Writes the best plan to the file of --save-plan; `plan` NULL: none found, no file. */
ms_status ms_search_save_plan(ms_ctx *cx, ms_output *out, const ms_plan *plan);

#endif
