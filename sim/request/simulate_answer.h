/* A plan's simulation from its options to its answer. */
#ifndef MS_SIM_REQUEST_SIMULATE_ANSWER_H
#define MS_SIM_REQUEST_SIMULATE_ANSWER_H

#include "sim/request/opened_plan.h"
#include "sim/request/simulate_options.h"

typedef struct ms_simulate_answer {
    bool is_complete; /* the answer can be written, whatever the status */
    ms_workload *workload;
    ms_plan plan;
    ms_planned planned;
    ms_prediction prediction;
    ms_simulation simulation, undisturbed, steady;
    ms_shortfall shortfall;
    ms_simulate_report report;
} ms_simulate_answer;

/* Simulates a plan after ms_simulate_flags_check. The report has no width of diagrams.
 * MS_ENOFIT, with the answer complete, if the plan does not fit; MS_EINPUT. Whatever the
 * status, the caller closes the answer, which must not move. */
ms_status ms_simulate_ask(ms_ctx *cx, const ms_simulate_flags *flags, const ms_plan *plan,
                          ms_simulate_answer *out);
void ms_simulate_answer_close(ms_simulate_answer *answer);

#endif
