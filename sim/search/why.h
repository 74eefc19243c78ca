/* Answers --why PLAN: which rule, limit, time bound, lack of memory or faster plan kept a
 * search from choosing a plan, with the search's own functions. */
#ifndef MS_SIM_SEARCH_WHY_H
#define MS_SIM_SEARCH_WHY_H

#include "sim/search/search.h"
#include "sim/step/prediction.h"

/* The choices that a --why question states; "asked plans" are the plans that have
 * them. */
typedef struct ms_why_question {
    const char *text; /* the question, as the user wrote it */
    ms_space asked;   /* all plans that have the stated choices */
} ms_why_question;

/* Reads a --why question, "tp=8,pp=4,recompute=none,order=pp,dp,tp", values as in
 * ms_space_limit. `*order` becomes the text after "order=", commas included, which the
 * caller must read; NULL if there is none. Errors: MS_EINPUT. */
ms_status ms_why_question_read(ms_ctx *cx, const char *text, const ms_plan *base,
                               const ms_stack *stack, const char **order,
                               ms_why_question *out);

typedef enum ms_why_verdict {
    MS_WHY_REFUSED,   /* every asked plan breaks an integer rule */
    MS_WHY_OUTSIDE,   /* asked plans are legal, but outside the search space */
    MS_WHY_NO_FIT,    /* no asked plan fits device memory */
    MS_WHY_LISTED,    /* in the list of best plans */
    MS_WHY_DOMINATED, /* skipped: a similar plan is at least as fast */
    MS_WHY_TIED,      /* exactly as fast as its mesh's listed plan */
    MS_WHY_SLOWER,    /* slower than a listed plan */
    MS_WHY_OPEN,      /* search interrupted before it decided */
    MS_NUM_WHY_VERDICTS
} ms_why_verdict;
extern const char *const ms_why_verdict_names[]; /* names of verdicts: "refused" ... */

#define MS_MAX_WHY_NUMBERS 8
/* One line of the answer to --why: the decision of one stage of the search. */
typedef struct ms_why_stage {
    const char *stage, *verdict; /* for example "memory", "fits" */
    const char *detail;          /* explanation, one sentence; NULL: none */
    int num_numbers;
    struct {
        const char *name; /* name that ends in the value's unit */
        double value;
    } numbers[MS_MAX_WHY_NUMBERS];
} ms_why_stage;

#define MS_MAX_WHY_STAGES 8
typedef struct ms_why {
    const ms_why_question *question;
    ms_why_verdict verdict;
    ms_refusal refusal;   /* rule that refused the plan; MS_LEGAL: none */
    const char *refused;  /* broken rule, nearest legal values; NULL if legal */
    const char *excluded; /* why the plan is outside the space; NULL: inside */
    long num_plans;       /* number of asked plans: in the space, or if 0, outside */
    bool has_plan;
    bool is_another; /* the search tries no asked plan; `plan` is tried in its place */
    ms_space home;   /* the space that contains `plan` */
    bool is_partial; /* interrupted before all asked plans were tried */
    ms_plan plan;    /* fastest asked plan that fits, else that of least memory */
    ms_prediction prediction;
    /* The fields from here to num_stages are set by ms_why_answer. */
    double mesh_bound_s;
    double threshold_s; /* slowest listed step time; infinite: list not full */
    bool mesh_ruled_out;
    ms_watch alone;   /* decisions if `plan` were the only plan */
    ms_watch among;   /* decisions among all plans of its mesh */
    bool is_stand_in; /* among.plan has another order of axes, of equal cost */
    int rank;         /* place in the list of best plans, from 1; 0: none */
    int mesh_rank;    /* list place of the mesh's fastest plan; 0: none */
    int num_stages;
    ms_why_stage stages[MS_MAX_WHY_STAGES];
} ms_why;

/* First half of the answer to --why, before the main search: checks that asked plans are
 * legal and in the space, and finds the best of them by a search with the threads and
 * interruption of `options`. Keeps a reference to the question. */
ms_status ms_why_ask(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                     const ms_search_options *options, const ms_why_question *question,
                     ms_why *out);

/* The finished main search that a --why question is about. */
typedef struct ms_why_context {
    ms_ctx *cx;
    ms_workload *workload;
    const ms_space *space;
    const ms_search_options *options;
    const ms_search_result *result;
    const ms_prediction *best; /* prediction of result->found[0]; NULL: none found */
} ms_why_context;

/* Second half of the answer to --why, after the main search: verdict and lines. */
ms_status ms_why_answer(const ms_why_context *known, ms_why *why);

/* Writes the answer to --why as JSON: {text, verdict, completions, stages, plan,
 * prediction}. */
void ms_why_write_json(ms_jout *out, const ms_why *why);

#endif
