/* meshsim search --allow A,B,...: choices that change numbers or need the host's memory,
 * which a search takes only where they are allowed and make the fastest plan faster. */
#ifndef MS_SIM_REQUEST_SEARCH_ALLOW_H
#define MS_SIM_REQUEST_SEARCH_ALLOW_H

#include "sim/request/search_request.h"

/* Searches every combination of what `list` allows, sets the flags of the fastest one in
 * the options of the plan, and r->limits to a text that names it. MS_EINPUT: a name that
 * is not known; MS_EINTERRUPTED. */
ms_status ms_search_allow(ms_search_request *r, const char *list, ms_plan_options *plan);

#endif
