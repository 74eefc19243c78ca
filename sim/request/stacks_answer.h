/* Several stacks searched side by side (meshsim search --stack A,B): the best plan of each,
 * and what separates it from the ceiling, the fastest plan of stack `ideal`. */
#ifndef MS_SIM_REQUEST_STACKS_ANSWER_H
#define MS_SIM_REQUEST_STACKS_ANSWER_H

#include "base/json.h"
#include "sim/search/search_report.h"
#include "sim/step/framework_rules.h"

typedef enum ms_stack_outcome {
    MS_STACK_FOUND,
    MS_STACK_NO_FIT,
    MS_STACK_NOT_LEGAL, /* no plan obeys the limits and the stack's rules */
    MS_STACK_INTERRUPTED,
    MS_NUM_STACK_OUTCOMES
} ms_stack_outcome;
extern const char *const ms_stack_outcome_names[]; /* "found" "no_fit" ..., NULL */

/* The outcome of one stack's search. */
typedef struct ms_stack_best {
    const char *stack;
    ms_stack_outcome outcome;
    const char *reason;              /* why there is no plan; NULL with a plan */
    const ms_search_report *search;  /* the search; NULL: the request was refused */
    const ms_plan *plan;             /* the plan to take; NULL: none */
    const ms_prediction *prediction; /* prediction of `plan` */
    double fastest_s;        /* step time of the stack's fastest plan; NaN: no plan */
    ms_broken_rules refused; /* rules that the ceiling's plan breaks */
} ms_stack_best;

typedef struct ms_stacks_report {
    const ms_search_report *inputs; /* the ceiling's search, for what was searched */
    ms_stack_best ceiling;          /* `plan` is the fastest plan, not the simplest */
    int num_stacks, num_found;
    ms_stack_best *stacks; /* (num_stacks): by fastest_s; behind num_found without plan */
    double elapsed_s;
} ms_stacks_report;

/* Parts of a step time above those of the ceiling, in seconds; negative: below. */
typedef struct ms_step_gap {
    double step_s, compute_s, exposed_comm_s, bubble_s, optimizer_s, host_s;
} ms_step_gap;
ms_step_gap ms_step_gap_of(const ms_prediction *prediction, const ms_prediction *ceiling);

/* Writes meshsim.search/1 with `stacks` and `ceiling` instead of `plans`. */
void ms_stacks_write_json(ms_jout *out, const ms_stacks_report *report);

#endif
