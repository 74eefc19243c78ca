/* meshsim search --stack A,B,...: which stacks are searched, and what is kept of each. */
#ifndef MS_CLI_CMD_SEARCH_STACKS_H
#define MS_CLI_CMD_SEARCH_STACKS_H

#include "cli/cmd/search_request.h"
#include "cli/report/stacks_report.h"
#include "sim/planning/sizes.h"

#define MS_CEILING_STACK "ideal"

/* Whether the text of --stack (NULL: not given) asks for several stacks: a list with
 * commas, or "all". */
bool ms_stacks_are_several(const char *text);

/* MS_EINPUT for options that only the search of one stack has. */
ms_status ms_stacks_check_request(const ms_search_request *r, const ms_sizes *sizes);

/* Lists the stacks in the text of --stack, each once. "all" stands for the stacks that
 * have the name of a file in configs/rules: each framework at its present version.
 * MS_EINPUT for an empty name. */
ms_status ms_stacks_list(ms_ctx *cx, const char *text, const char *const **names,
                         int *num_names);

/* Records how a stack's search ended: with its first plan, or for the ceiling its fastest
 * one, or with the reason why it has none. */
ms_stack_best ms_stacks_best(ms_ctx *cx, ms_workload *workload,
                             const ms_search_report *report, bool is_ceiling);

/* Orders the stacks by step time, those without a plan last and otherwise as given. */
void ms_stacks_order(ms_stacks_report *report);

/* MS_OK if any stack has a plan; otherwise, or when interrupted, records the error. */
ms_status ms_stacks_judge(ms_ctx *cx, const ms_stacks_report *report);

#endif
