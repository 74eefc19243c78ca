/* A plan's prediction from its options to its answer, and the answer as JSON. */
#ifndef MS_SIM_REQUEST_PREDICT_ANSWER_H
#define MS_SIM_REQUEST_PREDICT_ANSWER_H

#include "sim/request/advise_options.h"
#include "sim/request/campaign_options.h"
#include "sim/request/opened_plan.h"

/* Options of a prediction besides those of its plan. */
typedef struct ms_predict_inputs {
    ms_opt_choice engine;
    ms_advise_options advise;
    ms_campaign_options campaign;
    bool ignore_rules; /* price a plan that its framework refuses, and list the rules */
} ms_predict_inputs;

#define MS_NUM_PREDICT_SETS 3
/* The option tables that fill the inputs, which are emptied; returns their number.
 * ignore_rules is an option of plans. */
int ms_predict_option_sets(ms_predict_inputs *inputs,
                           ms_option_set sets[MS_NUM_PREDICT_SETS]);

typedef struct ms_predict_answer {
    bool is_complete; /* the answer can be written, whatever the status */
    ms_workload *workload;
    ms_plan plan; /* the plan as it was priced, its recomputation fitted */
    ms_prediction prediction;
    ms_broken_rules broken; /* rules that the plan breaks, with ignore_rules */
    bool lists_rules;
    const ms_advice *advice; /* NULL: none was asked for */
    bool asks_campaign;
    ms_campaign_answer campaign;
    ms_shortfall shortfall; /* if the plan does not fit */
} ms_predict_answer;

/* Whether the inputs go together; notes the default engine. MS_EINPUT. */
ms_status ms_predict_check(ms_ctx *cx, const ms_predict_inputs *inputs,
                           ms_predict_answer *out);
/* Predicts a plan after ms_predict_check. MS_ENOFIT, with the answer complete, if it does
 * not fit; MS_EINPUT. Whatever the status, the caller closes the answer. */
ms_status ms_predict_ask(ms_ctx *cx, const ms_predict_inputs *inputs, const ms_plan *plan,
                         ms_predict_answer *out);
void ms_predict_answer_close(ms_predict_answer *answer);

/* Writes meshsim.prediction/1. */
void ms_predict_answer_write_json(ms_jout *out, const ms_predict_answer *answer);

#endif
