/* A search from its options to its answer, and the answer as JSON. */
#ifndef MS_SIM_REQUEST_SEARCH_ANSWER_H
#define MS_SIM_REQUEST_SEARCH_ANSWER_H

#include "sim/request/search_request.h"
#include "sim/request/search_stacks.h"

/* All options of a search. */
typedef struct ms_search_inputs {
    ms_search_flags search;
    ms_memory_options memory;
    ms_campaign_options campaign;
    ms_plan_options plan;
} ms_search_inputs;

#define MS_NUM_SEARCH_SETS 4
/* The option tables that fill the inputs, which are emptied; returns their number. */
int ms_search_option_sets(ms_ctx *cx, ms_search_inputs *inputs,
                          ms_option_set sets[MS_NUM_SEARCH_SETS]);

/* The result of a search. It refers to its inputs and to cx->arena. */
typedef struct ms_search_answer {
    bool is_complete; /* the answer can be written, whatever the status */
    /* several stacks, with no other member set; NULL: one stack */
    ms_stacks_answer *stacks;
    /* the search; report.result is NULL if an objective takes no number of GPUs */
    ms_search_report report;
    const ms_objective_answer *objective; /* NULL: none was asked for */
    const ms_campaign_answer *campaign;   /* campaign of the first plan; NULL: none */
    ms_workload *workload;
} ms_search_answer;

/* Searches. MS_EINPUT; MS_ENOFIT and MS_EINTERRUPTED with what there is to say (see
 * is_complete). Whatever the status, the caller closes the answer. `listener` may be NULL;
 * work ends early when the context is interrupted. */
ms_status ms_search_ask(ms_ctx *cx, ms_search_inputs *inputs,
                        const ms_search_listener *listener, ms_search_answer *out);
void ms_search_answer_close(ms_search_answer *answer);

/* The first plan of a complete answer; NULL: none was found. */
const ms_plan *ms_search_answer_plan(const ms_search_answer *answer);

/* Writes meshsim.search/1. */
void ms_search_answer_write_json(ms_jout *out, ms_arena *arena,
                                 const ms_search_answer *answer);

/* ---- parts, for the search of several stacks ---- */

/* Tells the listener that long work begins; its error. */
ms_status ms_search_ready(const ms_search_request *r);
/* How the request is searched, for its num_best best plans. */
ms_search_options ms_search_request_options(const ms_search_request *r, int num_best);
/* Fills what the report says before the search. */
ms_status ms_search_report_open(const ms_search_request *r,
                                const ms_search_options *options,
                                const ms_workload *workload, ms_search_report *report);
/* Completes a search that has begun and fills the report, which points to results in
 * cx->arena; MS_OK also if nothing was found. */
ms_status ms_search_finish(const ms_search_request *r, const ms_search_options *options,
                           ms_workload *workload, ms_search_state *begun,
                           ms_search_report *report);

#endif
