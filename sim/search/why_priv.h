/* What the files of why share. */
#ifndef MS_SIM_SEARCH_WHY_PRIV_H
#define MS_SIM_SEARCH_WHY_PRIV_H

#include "sim/search/why.h"

#include <limits.h>

static inline bool ms_why_is_given(const ms_space *asked, int choice)
{
    return asked->high[choice] < LONG_MAX;
}

/* Plans of a space; at least 1 if there are some, when `exactly` is false. */
long ms_why_count(ms_workload *workload, const ms_space *space, bool exactly);

/* The space asked for has no plan: sets refusal and refused. For legal plans that are
 * never tried it returns why, and frees the choices at fault, so that `asked` holds what
 * is tried instead. */
const char *ms_why_no_plan(ms_ctx *cx, ms_workload *workload, ms_space *asked,
                           ms_why *why);

/* Why no completion is in the space although some are legal. `both` is what both allow,
 * `empty` the choice of which nothing is left. */
const char *ms_why_excluded(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                            const ms_space *asked, const ms_space *both, ms_choice empty);

/* The lines. */
ms_status ms_why_write_stages(const ms_why_context *known, ms_why *why);

#endif
