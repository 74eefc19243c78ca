/* Functions for answers to --why that the why*.c files share. */
#ifndef MS_SIM_SEARCH_WHY_PRIV_H
#define MS_SIM_SEARCH_WHY_PRIV_H

#include "sim/search/why.h"

#include <limits.h>

static inline bool ms_why_is_given(const ms_space *asked, int choice)
{
    return asked->high[choice] < LONG_MAX;
}

/* Number of legal plans of a space; unless `exactly`, any positive number for some. */
long ms_why_count(ms_workload *workload, const ms_space *space, bool exactly);

/* For a --why question that no plan answers: sets why->refusal and why->refused. If such
 * plans are legal but a search never tries them, returns the reason and drops the choices
 * at fault from `asked`; otherwise NULL. */
const char *ms_why_no_plan(ms_ctx *cx, ms_workload *workload, ms_space *asked,
                           ms_why *why);

/* Reason why no plan with the asked choices is in the search space. `both`: intersection
 * of `space` and `asked`; `empty`: a choice with no value in `both`. */
const char *ms_why_excluded(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                            const ms_space *asked, const ms_space *both, ms_choice empty);

/* Writes the lines of the answer to --why, one per stage of the search. */
ms_status ms_why_write_stages(const ms_why_context *known, ms_why *why);

#endif
