/* The best of several jobs by an objective, under a deadline and a budget, with proof.
 *
 * On a given number of GPUs, days, money and energy of a campaign all grow with the step
 * time (docs/formulas 14.3): the fastest plan, which a search proves, is the best by each
 * of them, and keeps the limits if any plan does. The best job is the best of these. */
#ifndef MS_SIM_PLANNING_OBJECTIVE_H
#define MS_SIM_PLANNING_OBJECTIVE_H

#include "sim/planning/best_plan.h"

typedef enum ms_objective {
    MS_OBJECTIVE_TIME,    /* seconds of the steps alone for each token */
    MS_OBJECTIVE_COST,    /* money of the campaign */
    MS_OBJECTIVE_GPUS,    /* number of GPUs; of equal ones the faster job */
    MS_OBJECTIVE_ENERGY,  /* kWh of the campaign */
    MS_OBJECTIVE_MEMORY,  /* device memory that a plan needs to fit by the rule, bytes */
    MS_OBJECTIVE_GOODPUT, /* seconds of the campaign for each token, all losses included */
    MS_NUM_OBJECTIVES
} ms_objective;
/* names of ms_objective: "time" "cost" ..., NULL-ended */
extern const char *const ms_objective_names[];
/* Words for an objective's value: "money", "GPUs". */
const char *ms_objective_unit(ms_objective objective);
/* Whether an objective is about a campaign, and has no value without one. */
bool ms_objective_needs_campaign(ms_objective objective);

typedef struct ms_objective_question {
    ms_objective objective;
    int num_jobs;
    const ms_best_question *jobs; /* (num_jobs): candidates, with one campaign question */
    int num_threads;
    const volatile int *interrupted; /* nonzero: stop; NULL: never */
} ms_objective_question;

/* A job's best plan by the objective. */
typedef struct ms_objective_job {
    long gpus, global_batch;
    bool answered; /* the search is complete */
    ms_best_plan best;
    double value;      /* value of the objective, less is better; NaN: none */
    bool keeps_limits; /* deadline and budget; true without them */
} ms_objective_job;

typedef struct ms_objective_answer {
    ms_objective objective;
    int num_jobs;
    ms_objective_job *jobs; /* (num_jobs) */
    int best;     /* index of the best job that keeps the limits; -1: none does */
    bool optimal; /* proven: no plan of any job is better by the objective */
} ms_objective_answer;

/* Answers an objective question; arrays live in cx->arena. MS_EINTERRUPTED: with the jobs
 * that were answered. MS_EINPUT: bad input for all jobs. */
ms_status ms_objective_find(ms_ctx *cx, const ms_objective_question *question,
                            ms_objective_answer *out);

/* The first plan found, if none of those found makes progress; otherwise NULL. */
const ms_best_plan *ms_objective_stuck(const ms_objective_answer *answer);

/* The plan that fits in the least device memory and keeps the campaign's limits; of equal
 * ones the fastest. Halves the memory between what no plan fits and what one fits, each
 * time by a search, down to one byte. */
ms_status ms_least_memory_find(ms_ctx *cx, const ms_best_question *question,
                               const ms_search_options *options, ms_best_plan *out);

#endif
