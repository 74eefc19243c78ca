/* Functions that the why*.c files share. */
#ifndef MS_SIM_SEARCH_WHY_PRIV_H
#define MS_SIM_SEARCH_WHY_PRIV_H

#include "sim/search/why.h"

#include <limits.h>

static inline bool ms_why_is_given(const ms_space *asked, int choice)
{
    return asked->high[choice] < LONG_MAX;
}

/* Number of plans of a space; if not `exactly`, only whether it is above 0 holds. */
long ms_why_count(ms_workload *workload, const ms_space *space, bool exactly);

/* For a question without plans: sets why->refusal and why->refused. If its plans are legal
 * but never tried, returns the reason, and frees the choices at fault so that `asked`
 * holds what is tried instead; otherwise NULL. */
const char *ms_why_no_plan(ms_ctx *cx, ms_workload *workload, ms_space *asked,
                           ms_why *why);

/* The reason why no completion is in the space although some are legal. `both`: the
 * intersection of the two spaces; `empty`: a choice without values in it. */
const char *ms_why_excluded(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                            const ms_space *asked, const ms_space *both, ms_choice empty);

/* Writes the stages of the answer to --why. */
ms_status ms_why_write_stages(const ms_why_context *known, ms_why *why);

#endif
