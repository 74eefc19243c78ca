/* A plan with its prediction, for plots of several plans, and texts about such plans. */
#ifndef MS_PLOTS_PRICED_PLAN_H
#define MS_PLOTS_PRICED_PLAN_H

#include "sim/step/prediction.h"

#define MS_MAX_PLOT_PLANS 12

typedef struct ms_priced_plan {
    const char *name; /* name of the plan's file; NULL: it has none */
    const ms_plan *plan;
    const ms_workload *workload;
    ms_prediction prediction;
} ms_priced_plan;

/* "Peak memory of llama-3.1-8b on 8 × H100" for plans of one model on equal devices, else
 * "Peak memory of 3 plans"; `what` is "Peak memory". */
const char *ms_priced_plans_title(ms_arena *arena, const char *what,
                                  const ms_priced_plan *plans, int num);
/* Name, axes and choices of a plan in lines of at most `most` bytes where possible. */
const char *ms_priced_plan_label(ms_arena *arena, const ms_priced_plan *plan,
                                 size_t most);
/* The plan's name, or its axes if it has none. */
const char *ms_priced_plan_name(ms_arena *arena, const ms_priced_plan *plan);

#endif
