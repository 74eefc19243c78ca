/* Request of meshsim search, as its flags give it, and the space of plans that they leave. */
#ifndef MS_SIM_REQUEST_SEARCH_REQUEST_H
#define MS_SIM_REQUEST_SEARCH_REQUEST_H

#include "sim/planning/objective.h"
#include "sim/request/campaign_options.h"
#include "sim/request/memory_options.h"
#include "sim/request/plan_options.h"
#include "sim/search/search_report.h"
#include "sim/search/why.h"

typedef struct ms_search_flags {
    ms_opt_integer top;
    ms_opt_list fix, limit;
    ms_opt_integer max_virtual_stages, max_microbatch;
    bool variants;
    const char *save_plan;
    const char *why;
    const char *tie_band;
    ms_opt_choice engine;
    ms_opt_choice objective;
    const char *allow; /* names for ms_search_allow; NULL: none */
    const char *gpus;  /* a number, a range or a list */
} ms_search_flags;

typedef struct ms_search_request ms_search_request;

/* Whoever waits for a search. Absent functions are NULL. */
typedef struct ms_search_listener {
    /* The request is legal, and long work begins: r->space->base is what the search starts
     * from; called for each of several stacks. Its error ends the search. */
    ms_status (*ready)(void *payload, const ms_search_request *r);
    void (*progress)(void *payload, const ms_search_progress *progress);
    void *payload;
} ms_search_listener;

struct ms_search_request {
    ms_ctx *cx;
    const ms_plan_options *plan;
    const ms_search_flags *search;
    const ms_memory_options *memory;
    ms_space *space;
    const char *limits; /* text of all limits for the report */
    ms_why_question *why;
    const ms_campaign_options *campaign;
    bool asks_campaign;
    const ms_objective_answer *objective; /* objective that chose the GPUs; NULL: none */
    const ms_search_listener *listener;
};

/* Sets the choices that a search keeps and --fix names, as their flags would:
 * "offload.optimizer=update". MS_EINPUT: no value of the choice. */
ms_status ms_search_fix_kept(ms_ctx *cx, const ms_opt_list *fix, ms_plan_options *plan);

/* Narrows r->space by the flags and fills r->limits. MS_EINPUT: a limit that is wrong,
 * that searches do not take, or that leaves no plan of the stack. */
ms_status ms_search_request_space(ms_search_request *r);

/* Sets the memory rule of the request in a workload. MS_EINPUT: options of memory. */
ms_status ms_search_request_memory(const ms_search_request *r, ms_workload *workload);

/* The best plan by the objective; NULL without one. */
const ms_best_plan *ms_search_request_best(const ms_search_request *r);
/* Sets the tie band of a report: the user's, or where errors are known for such plans (as
 * for their intervals) the default, otherwise 0; narrower where plans in it would break
 * the limits of an objective. */
ms_status ms_search_request_tie_band(const ms_search_request *r,
                                     const ms_workload *workload,
                                     ms_search_report *report);

#endif
