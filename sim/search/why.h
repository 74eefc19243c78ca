/* What became of one candidate in a search: which rule, limit, bound, shortage or faster
 * plan stood against it, stage by stage. The answers come from the functions that the
 * search runs; bounds are held against the finished list. */
#ifndef MS_SIM_SEARCH_WHY_H
#define MS_SIM_SEARCH_WHY_H

#include "sim/search/search.h"
#include "sim/step/prediction.h"

/* Choices of a plan; those left open are the search's. */
typedef struct ms_why_question {
    const char *text; /* as given */
    /* everything that the model and stack allow, with these choices fixed */
    ms_space asked;
} ms_why_question;

/* Reads "tp=8,pp=4,recompute=none,order=pp,dp,tp": values as ms_space_limit takes them.
 * `*order` is the text of the order of axes, whose names may be separated by commas, as
 * nothing else is without "="; NULL: not given. It is the caller's to read. Errors:
 * MS_EINPUT. */
ms_status ms_why_question_read(ms_ctx *cx, const char *text, const ms_plan *base,
                               const ms_stack *stack, const char **order,
                               ms_why_question *out);

typedef enum ms_why_verdict {
    MS_WHY_REFUSED,   /* an integer rule refuses every completion */
    MS_WHY_OUTSIDE,   /* legal, but not in the space */
    MS_WHY_NO_FIT,    /* no completion fits */
    MS_WHY_LISTED,    /* `rank` says where */
    MS_WHY_DOMINATED, /* passed over for a plan like it that is at least as fast */
    MS_WHY_TIED,      /* as fast as the listed plan of its mesh, which comes first */
    MS_WHY_SLOWER,    /* than the list, or than the listed plan of its mesh */
    MS_WHY_OPEN,      /* the search was interrupted before it was decided */
    MS_NUM_WHY_VERDICTS
} ms_why_verdict;
extern const char *const ms_why_verdict_names[]; /* "refused" "outside the space" ... */

/* One line of the answer. */
#define MS_MAX_WHY_NUMBERS 8
typedef struct ms_why_stage {
    const char *stage, *verdict; /* "memory", "fits" */
    const char *detail;          /* one sentence; NULL: the verdict says all */
    int num_numbers;
    struct {
        const char *name; /* with unit */
        double value;
    } numbers[MS_MAX_WHY_NUMBERS];
} ms_why_stage;

#define MS_MAX_WHY_STAGES 8
typedef struct ms_why {
    const ms_why_question *question;
    ms_why_verdict verdict;
    ms_refusal refusal;   /* MS_LEGAL unless refused */
    const char *refused;  /* with numbers, and the nearest values that would do; NULL */
    const char *excluded; /* what keeps it out of the space; NULL: it is inside */
    long num_plans;       /* completions in the space; when outside, without its limits */
    /* `plan` is the fastest completion that fits, or the one that needs least memory */
    bool has_plan;
    /* such combinations are never tried: `plan` is what is tried instead */
    bool is_another;
    ms_space home;   /* the space that `plan` is in */
    bool is_partial; /* interrupted before all completions were covered */
    ms_plan plan;
    ms_prediction prediction;
    /* set by ms_why_answer */
    double mesh_bound_s;
    double threshold_s; /* slowest of the list; infinite: the list has room */
    bool mesh_ruled_out;
    ms_watch alone;   /* nothing else looked at: all bounds are there */
    ms_watch among;   /* with the other plans of its mesh, against the finished list */
    bool is_stand_in; /* among.plan has another order of axes with the same spans */
    int rank;         /* in the list, from 1; 0: not listed */
    int mesh_rank;    /* of its mesh's fastest plan; 0: none is listed */
    int num_stages;
    ms_why_stage stages[MS_MAX_WHY_STAGES];
} ms_why;

/* Before the search: is it legal, is it in the space, and which completion is the best?
 * Searches the completions with the options' threads and interruption. The question is
 * kept by reference; what is made lives in cx->arena. */
ms_status ms_why_ask(ms_ctx *cx, ms_workload *workload, const ms_space *space,
                     const ms_search_options *options, const ms_why_question *question,
                     ms_why *out);

/* What the answer is held against: the search that was made. */
typedef struct ms_why_context {
    ms_ctx *cx;
    ms_workload *workload;
    const ms_space *space;
    const ms_search_options *options;
    const ms_search_result *result;
    const ms_prediction *best; /* of result->found[0]; NULL: nothing was found */
} ms_why_context;

/* After the search: completes the answer. */
ms_status ms_why_answer(const ms_why_context *known, ms_why *why);

/* {text, verdict, completions, stages: [{stage, verdict, detail, numbers ...}], plan,
 * prediction} */
void ms_why_write_json(ms_jout *out, const ms_why *why);

#endif
