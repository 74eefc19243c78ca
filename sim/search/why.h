/* Why a search did not choose a plan: the rule, limit, bound, lack of memory or faster plan
 * that ruled it out, stage by stage, by the functions that the search runs. */
#ifndef MS_SIM_SEARCH_WHY_H
#define MS_SIM_SEARCH_WHY_H

#include "sim/search/search.h"
#include "sim/step/prediction.h"

/* Choices that a question states; its completions are the plans that have them. */
typedef struct ms_why_question {
    const char *text; /* the question, as the user wrote it */
    ms_space asked;   /* all that model and stack allow, with these choices fixed */
} ms_why_question;

/* Reads "tp=8,pp=4,recompute=none,order=pp,dp,tp", with the values of ms_space_limit.
 * `*order` becomes the text of the order of axes, which may contain commas and is left to
 * the caller to read; NULL if there is none. Errors: MS_EINPUT. */
ms_status ms_why_question_read(ms_ctx *cx, const char *text, const ms_plan *base,
                               const ms_stack *stack, const char **order,
                               ms_why_question *out);

typedef enum ms_why_verdict {
    MS_WHY_REFUSED,   /* an integer rule refuses every completion */
    MS_WHY_OUTSIDE,   /* legal, but outside the search space */
    MS_WHY_NO_FIT,    /* no completion fits device memory */
    MS_WHY_LISTED,    /* in the list of best plans, at `rank` */
    MS_WHY_DOMINATED, /* skipped: a similar plan is at least as fast */
    MS_WHY_TIED,      /* exactly as fast as the listed plan of its mesh */
    MS_WHY_SLOWER,    /* slower than the listed plans, or than that of its mesh */
    MS_WHY_OPEN,      /* the search was interrupted before it decided */
    MS_NUM_WHY_VERDICTS
} ms_why_verdict;
extern const char *const ms_why_verdict_names[]; /* "refused" "outside the space" ... */

#define MS_MAX_WHY_NUMBERS 8
/* One line of the answer. */
typedef struct ms_why_stage {
    const char *stage, *verdict; /* for example "memory", "fits" */
    const char *detail;          /* explanation, one sentence; NULL: none */
    int num_numbers;
    struct {
        const char *name; /* name of a number, with its unit at the end */
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
    long num_plans;       /* completions in the space, or if outside without its limits */
    bool has_plan;
    bool is_another;          /* the search never tries the plan, but `plan` instead */
    ms_space home;            /* the space that contains `plan` */
    bool is_partial;          /* interrupted before all completions were tried */
    ms_plan plan;             /* fastest completion that fits, else the smallest */
    ms_prediction prediction; /* prediction of `plan` */
    /* The fields from here to num_stages are set by ms_why_answer. */
    double mesh_bound_s;
    double threshold_s; /* slowest listed step time; infinite: the list has room */
    bool mesh_ruled_out;
    ms_watch alone;   /* exploration of `plan` only, with all bounds */
    ms_watch among;   /* exploration of its whole mesh, against the finished list */
    bool is_stand_in; /* among.plan has another order of axes, of equal cost */
    int rank;         /* place in the list of best plans, from 1; 0: not listed */
    int mesh_rank;    /* list place of its mesh's fastest plan; 0: not listed */
    int num_stages;
    ms_why_stage stages[MS_MAX_WHY_STAGES];
} ms_why;

/* First half of the answer to --why, before the search: whether the plan is legal and
 * in the space, and its best completion, by a search with the options' threads and
 * interruption. The question is kept by reference; all else lives in cx->arena. */
ms_status ms_why_ask(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                     const ms_search_options *options, const ms_why_question *question,
                     ms_why *out);

/* The finished search that the answer to --why refers to. */
typedef struct ms_why_context {
    ms_ctx *cx;
    ms_workload *workload;
    const ms_space *space;
    const ms_search_options *options;
    const ms_search_result *result;
    const ms_prediction *best; /* prediction of result->found[0]; NULL: none found */
} ms_why_context;

/* Second half of the answer to --why, after the search. */
ms_status ms_why_answer(const ms_why_context *known, ms_why *why);

/* Writes {text, verdict, completions, stages: [{stage, verdict, detail, numbers ...}], plan,
 * prediction} */
void ms_why_write_json(ms_jout *out, const ms_why *why);

#endif
