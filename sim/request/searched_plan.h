/* Options of a plan where searches choose the rest of it: which remain, and the limits that
 * narrow the searches. */
#ifndef MS_SIM_REQUEST_SEARCHED_PLAN_H
#define MS_SIM_REQUEST_SEARCHED_PLAN_H

#include "sim/planning/best_plan.h"
#include "sim/request/memory_options.h"
#include "sim/request/plan_options.h"

/* The options of a plan without those named in `own` (NULL-ended), which the command has
 * itself. With `kept` (NULL-ended; NULL: all) others than these are mistakes, but for
 * optional choices that searches keep, such as --lora-rank. */
const ms_option *ms_searched_plan_table(ms_ctx *cx, const char *const *kept,
                                        const char *const *own);

/* Reads --limit, splitting "tp<=8,pp=4", and the memory rule. MS_EINPUT: the rule. */
ms_status ms_plan_limits_read(ms_ctx *cx, const ms_opt_list *limits,
                              const ms_memory_options *memory, ms_plan_limits *out);

#endif
