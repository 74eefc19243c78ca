/* meshsim search --why: why the search did not choose a given plan. */
#ifndef MS_SIM_REQUEST_SEARCH_WHY_H
#define MS_SIM_REQUEST_SEARCH_WHY_H

#include "sim/search/why.h"

/* Reads `text`, the plan choices in --why (ms_why_question_read); an order of axes in it
 * is read like that of --order. MS_EINPUT. */
ms_status ms_search_why_read(ms_ctx *cx, const char *text, const ms_plan *base,
                             const ms_stack *stack, ms_why_question *out);

#endif
