/* The fastest plan of a job that fits, with its campaign: one search, its proof kept. Many
 * such questions are answered side by side. */
#ifndef MS_SIM_PLANNING_BEST_PLAN_H
#define MS_SIM_PLANNING_BEST_PLAN_H

#include "sim/planning/campaign_of_plan.h"
#include "sim/search/search.h"

/* Limits of a search. */
typedef struct ms_plan_limits {
    int num;
    const char *const *texts; /* (num) of choices, as ms_space_limit reads them */
    ms_memory_rule memory;    /* plans must fit by this rule */
} ms_plan_limits;

/* A cluster and a profile in place of those that a job names; its other files are those
 * of a workload. */
typedef struct ms_best_files {
    const ms_workload *others; /* open as long as questions are answered */
    const ms_cluster *cluster; /* whole, not as a job sees it */
    const ms_profile *profile;
    const ms_profile *const *group_profiles; /* ms_workload_inputs.group_profiles */
} ms_best_files;

typedef struct ms_best_question {
    ms_plan base;               /* the job: model, cluster, GPUs, batch, stack */
    const ms_best_files *files; /* NULL: those that `base` names */
    const ms_plan_limits *limits;
    const ms_space
        *space; /* space of `base`, to be limited; NULL: all plans of the stack */
    const ms_campaign_question *campaign; /* NULL: no campaign */
} ms_best_question;

typedef struct ms_best_plan {
    bool found;          /* a plan fits */
    const char *reason;  /* why no plan was found, in a few words; NULL if one was */
    bool too_large;      /* none was found by a search, but legal ones that do not fit */
    bool optimal;        /* the search covered its whole space */
    double open_bound_s; /* least step time that an open plan may have; NaN: none open */
    ms_plan plan;        /* the fastest plan, with its layers per stage */
    ms_prediction prediction;
    /* device memory that the plan needs to fit by the rule; the least of all legal plans
     * if they are too large */
    double needed_bytes;
    bool has_campaign;
    ms_campaign_answer campaign;
} ms_best_plan;

/* The first of `num` plans with a campaign, if a plan was found and none of those found
 * makes progress; otherwise NULL. */
const ms_best_plan *ms_best_plans_stuck(const ms_best_plan *plans, int num);
/* Whether a plan was found whose campaign, if asked for, keeps deadline and budget. */
bool ms_best_plan_keeps_limits(const ms_best_plan *best);

/* Searches the fastest plan of a job; `options` without num_best, which is 1. Writes *out
 * (arrays: cx->arena). MS_OK: also if no plan fits; MS_EINPUT: base or limits;
 * MS_EINTERRUPTED: the search was not completed. */
ms_status ms_best_plan_find(ms_ctx *cx, const ms_best_question *question,
                            const ms_search_options *options, ms_best_plan *out);
/* ms_best_plan_find with a workload that is open; sets its memory rule. */
ms_status ms_best_plan_in(ms_ctx *cx, ms_workload *workload,
                          const ms_best_question *question,
                          const ms_search_options *options, ms_best_plan *out);
/* The answer for a plan that is known, as a search would give it. MS_EINPUT for a plan of
 * another job, or an illegal one. */
ms_status ms_best_plan_again(ms_ctx *cx, const ms_best_question *question,
                             const ms_plan *plan, ms_best_plan *out);

/* Many questions, each answered by one thread. */
typedef struct ms_best_batch {
    int num;
    const ms_best_question *questions; /* (num) */
    const bool *known;                 /* (num): already answered; NULL: none is */
    int num_threads;
    const volatile int *interrupted; /* nonzero: stop; NULL: never */
    /* Called for each answer as it comes, one at a time; a status other than MS_OK stops.
     * NULL: not called. */
    ms_status (*answered)(void *payload, int index, const ms_best_plan *answer);
    void *payload;
} ms_best_batch;

/* Answers the questions of a batch that are not known into answers[i]; their arrays live
 * in cx->arena. A job that is illegal (MS_EINPUT) has its message as the reason why no
 * plan was found. MS_EINTERRUPTED: answers are missing; `*num_answered` counts them. */
ms_status ms_best_batch_answer(ms_ctx *cx, const ms_best_batch *batch,
                               ms_best_plan *answers, int *num_answered);

#endif
