/* A plan's explanation from its options to its answer, and the answer as JSON. */
#ifndef MS_SIM_REQUEST_EXPLAIN_ANSWER_H
#define MS_SIM_REQUEST_EXPLAIN_ANSWER_H

#include "sim/explain/explain_view.h"
#include "sim/request/advise_options.h"
#include "sim/request/opened_plan.h"

/* Options of an explanation besides those of its plan. */
typedef struct ms_explain_inputs {
    bool collectives, tensors, coefficients,
        questions; /* parts to explain; none set: all parts, in short */
    bool types;    /* explain local SPMD types; excludes all other questions */
    const char *block;
    ms_opt_integer rank;
    ms_advise_options advise;
} ms_explain_inputs;

/* Options that fill a ms_explain_inputs; those of the advice have a table of their own. */
extern const ms_option ms_explain_option_table[];

typedef struct ms_explain_result {
    bool is_complete; /* the answer can be written, whatever the status */
    ms_workload *workload;
    ms_plan plan;
    ms_explain_view view;
    ms_explanation explanation;
    const ms_advice *advice; /* NULL: none was asked for */
    bool fits;
    ms_shortfall shortfall; /* if the plan does not fit */
} ms_explain_result;

/* Explains a plan. MS_ENOFIT, with the answer complete, if it does not fit; MS_EINPUT.
 * With `types` the answer is complete without a judgement of memory. Whatever the status,
 * the caller closes the answer. */
ms_status ms_explain_ask(ms_ctx *cx, const ms_explain_inputs *inputs, const ms_plan *plan,
                         ms_explain_result *out);
void ms_explain_answer_close(ms_explain_result *answer);

/* Writes meshsim.explain/1, not for `types`. */
void ms_explain_answer_write_json(ms_jout *out, ms_arena *arena,
                                  const ms_explain_result *answer);

#endif
