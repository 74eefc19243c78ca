/* meshsim search --gpus A..B --objective X: which of several numbers of GPUs is the best
 * by an objective; the search of that number follows. */
#ifndef MS_SIM_REQUEST_SEARCH_OBJECTIVE_H
#define MS_SIM_REQUEST_SEARCH_OBJECTIVE_H

#include "sim/planning/objective.h"
#include "sim/planning/sizes.h"
#include "sim/request/search_request.h"

/* Reads the text of --gpus (NULL: none, and out->num 0), and sets the first number in the
 * options of the plan. MS_EINPUT. */
ms_status ms_search_read_sizes(ms_ctx *cx, const char *gpus, ms_plan_options *plan,
                               ms_sizes *out);

/* Whether the request asks for an objective: --objective, several numbers of GPUs, or a
 * limit that the chosen plan is to keep (--deadline, --budget). */
bool ms_search_asks_objective(const ms_search_request *r, const ms_sizes *sizes);

/* Finds the best number of GPUs. MS_EINPUT: options that do not go together, or a number
 * that is illegal; MS_EINTERRUPTED: with the jobs answered so far. */
ms_status ms_search_by_objective(const ms_search_request *r, const ms_sizes *sizes,
                                 ms_objective_answer *out);

#endif
