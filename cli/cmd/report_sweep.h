/* meshsim report: a file of a sweep, and the point that the page is about. */
#ifndef MS_CLI_CMD_REPORT_SWEEP_H
#define MS_CLI_CMD_REPORT_SWEEP_H

#include "base/json.h"
#include "cli/page/page.h"

/* Reads the points and choices of a sweep, except its plans and command. `wanted`: index
 * of the point to report; NULL: the cheapest of the first task, without money the fastest.
 * *reported: that point's object. MS_EINPUT: the file is incomplete, or the point has no
 * plan. */
ms_status ms_report_sweep_read(ms_ctx *cx, ms_jval root, const ms_opt_integer *wanted,
                               ms_page_sweep *out, ms_jval *reported);

/* Lists the numbers of GPUs of a search's `jobs`: "64,128"; NULL if there are none.
 * *one_batch: they have one batch. */
ms_status ms_report_sizes_text(ms_ctx *cx, ms_jval jobs, const char **out,
                               bool *one_batch);

/* Reads the sizes that a search with an objective has compared, the chosen one reported.
 * `root`: the search. *out: NULL if it has no objective. MS_EINPUT: it is incomplete. */
ms_status ms_report_objective_read(ms_ctx *cx, ms_jval root, const ms_page_sweep **out);

#endif
