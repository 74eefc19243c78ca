/* Why a search did not choose a plan: the rule, limit, bound, lack of memory or faster plan
 * that ruled it out, stage by stage, by the functions that the search runs. */
#ifndef MS_SIM_SEARCH_WHY_H
#define MS_SIM_SEARCH_WHY_H

#include "sim/search/search.h"
#include "sim/step/prediction.h"

/* Choices of a plan; its completions are the plans that have them. */
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
    MS_WHY_OUTSIDE,   /* legal, but not in the space */
    MS_WHY_NO_FIT,    /* no completion fits */
    MS_WHY_LISTED,    /* in the list, at `rank` */
    MS_WHY_DOMINATED, /* skipped for a similar plan that is at least as fast */
    MS_WHY_TIED,      /* no faster or slower than the listed plan of its mesh */
    MS_WHY_SLOWER,    /* slower than the list, or than the listed plan of its mesh */
    MS_WHY_OPEN,      /* the search was interrupted before it was decided */
    MS_NUM_WHY_VERDICTS
} ms_why_verdict;
extern const char *const ms_why_verdict_names[]; /* "refused" "outside the space" ... */

#define MS_MAX_WHY_NUMBERS 8
/* One line of the answer. */
typedef struct ms_why_stage {
    const char *stage, *verdict; /* "memory", "fits" */
    const char *detail;          /* one sentence; NULL: none */
    int num_numbers;
    struct {
        const char *name; /* ends in the unit */
        double value;
    } numbers[MS_MAX_WHY_NUMBERS];
} ms_why_stage;

#define MS_MAX_WHY_STAGES 8
typedef struct ms_why {
    const ms_why_question *question;
    ms_why_verdict verdict;
    ms_refusal refusal;   /* MS_LEGAL unless refused */
    const char *refused;  /* the rule, with the nearest legal values; NULL if legal */
    const char *excluded; /* reason why it is outside the space; NULL: it is inside */
    long num_plans;       /* completions in the space, or if outside without its limits */
    bool has_plan;
    bool is_another;          /* the search never tries the plan, but `plan` instead */
    ms_space home;            /* the space that contains `plan` */
    bool is_partial;          /* interrupted before all completions were covered */
    ms_plan plan;             /* fastest completion that fits, else the smallest */
    ms_prediction prediction; /* prediction of `plan` */
    /* The fields from here to num_stages are set by ms_why_answer. */
    double mesh_bound_s;
    double threshold_s; /* slowest step time of the list; infinite: the list has room */
    bool mesh_ruled_out;
    ms_watch alone;   /* exploration of this plan only, with all bounds */
    ms_watch among;   /* exploration of the whole mesh, against the finished list */
    bool is_stand_in; /* among.plan has another order of axes with the same spans */
    int rank;         /* place in the list, from 1; 0: not listed */
    int mesh_rank;    /* place of its mesh's fastest plan; 0: none is listed */
    int num_stages;
    ms_why_stage stages[MS_MAX_WHY_STAGES];
} ms_why;

/* First half of the answer, before the search: whether the plan is legal and in the space,
 * and its best completion, by a search with the options' threads and interruption. The
 * question is kept by reference; all else lives in cx->arena. */
ms_status ms_why_ask(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                     const ms_search_options *options, const ms_why_question *question,
                     ms_why *out);

/* The search that the answer refers to. */
typedef struct ms_why_context {
    ms_ctx *cx;
    ms_workload *workload;
    const ms_space *space;
    const ms_search_options *options;
    const ms_search_result *result;
    const ms_prediction *best; /* prediction of result->found[0]; NULL: none found */
} ms_why_context;

/* Second half of the answer, after the search. */
ms_status ms_why_answer(const ms_why_context *known, ms_why *why);

/* Writes {text, verdict, completions, stages: [{stage, verdict, detail, numbers ...}], plan,
 * prediction} */
void ms_why_write_json(ms_jout *out, const ms_why *why);

#endif
