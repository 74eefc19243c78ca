/* Folder sim/planning: what a whole training takes, and which job to choose for it: many
 * searches about one campaign; one search is in sim/search.
 *
 * The campaign of one plan: its terms, from a user's or by default, and its results. */
#ifndef MS_SIM_PLANNING_CAMPAIGN_OF_PLAN_H
#define MS_SIM_PLANNING_CAMPAIGN_OF_PLAN_H

#include "costmodel/campaign/campaign.h"
#include "sim/step/prediction.h"

/* A user's question about a training. Its length is one of given.tokens, `flop` and
 * `chinchilla`. */
typedef struct ms_campaign_question {
    ms_campaign_terms given; /* NaN: the default of ms_campaign_terms_of */
    double flop;     /* the whole training, 6 a parameter and token; NaN: not given */
    bool chinchilla; /* 20 tokens a parameter */
    double deadline_s, budget; /* NaN: none */
    bool simulate_failures;
    long seed; /* seed of simulate_failures */
} ms_campaign_question;

/* A question with nothing given. */
ms_campaign_question ms_campaign_question_empty(void);

/* Terms for a job of `gpus`. Defaults: price and power of the cluster's file; PUE 1;
 * interruptions and storage per GPU as Llama 3 405B's; a restart of 10 minutes; grid and
 * spare nodes unknown. */
ms_campaign_terms ms_campaign_terms_of(const ms_campaign_question *question,
                                       const ms_workload *workload, double gpus);

/* A campaign with the terms that it was reckoned on. */
typedef struct ms_campaign_answer {
    ms_campaign_terms terms;
    ms_campaign_step step;
    ms_campaign campaign;
    double deadline_s, budget; /* NaN: none */
    bool simulated;            /* `failures` is set */
    ms_simulated_job failures;
} ms_campaign_answer;

/* The campaign of a plan by its prediction, without simulated failures. Its results are
 * NaN where the training does not advance. */
ms_campaign_answer ms_campaign_of_plan(const ms_campaign_question *question,
                                       const ms_workload *workload, const ms_plan *plan,
                                       const ms_prediction *prediction);

/* Whether the training advances at all; otherwise times, money and energy are NaN. */
bool ms_campaign_advances(const ms_campaign *campaign);
/* Why a training does not advance: "no plan makes progress: ...". */
const char *ms_no_progress_text(ms_arena *arena, const ms_campaign_answer *answer);
/* Records MS_ENOFIT with that text. */
ms_status ms_campaign_fail_progress(ms_ctx *cx, const ms_campaign_answer *answer);
/* Whether the campaign ends by the deadline and within the budget; true without them. */
bool ms_campaign_keeps_limits(const ms_campaign_answer *answer);
/* The largest share up to most_frac by which the step may take longer and the campaign
 * still keeps its limits; 0 if it does not keep them now. */
double ms_campaign_slack_frac(const ms_campaign_answer *answer, double most_frac);
/* The campaign if the step took step_s. */
ms_campaign_answer ms_campaign_with_step(const ms_campaign_answer *answer, double step_s);

#endif
