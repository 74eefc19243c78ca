/* meshsim search --stack A,B,...: which stacks are searched, and what is kept of each. */
#ifndef MS_SIM_REQUEST_SEARCH_STACKS_H
#define MS_SIM_REQUEST_SEARCH_STACKS_H

#include "sim/planning/sizes.h"
#include "sim/request/search_request.h"
#include "sim/request/stacks_answer.h"

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

/* The search of one of several stacks; its own context, because bad input may be bad for
 * this stack alone. */
typedef struct ms_stack_search {
    ms_ctx cx;
    ms_plan_options options; /* the user's, with this stack */
    ms_space space;
    ms_search_request request;
    ms_workload *workload; /* NULL: not opened */
    ms_search_options how;
    ms_search_state *begun; /* NULL: bad input for this stack */
    ms_search_report report;
} ms_stack_search;

typedef struct ms_stacks_answer {
    int num_searches;
    ms_stack_search *searches; /* (num_searches): the ceiling's, and one a stack */
    ms_stacks_report report;
    bool is_complete; /* the report can be written, whatever the status */
} ms_stacks_answer;

/* Searches the stacks that the request names, and the ceiling. Whatever the status, the
 * caller closes the search after it has read the report. */
ms_status ms_stacks_search(ms_search_request *r, const ms_sizes *sizes,
                           ms_stacks_answer *out);
void ms_stacks_answer_close(ms_stacks_answer *search);

#endif
