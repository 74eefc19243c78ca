/* A sweep: the fastest plan of each of many jobs, and what to choose among them. */
#ifndef MS_SIM_PLANNING_PLAN_SWEEP_H
#define MS_SIM_PLANNING_PLAN_SWEEP_H

#include "sim/planning/best_plan.h"

#define MS_MAX_SWEEP_POINTS 20000

/* A task is a model with a sequence length and a batch; its points are the clusters and
 * numbers of GPUs on which it may run. All tasks have points alike. */
typedef struct ms_plan_sweep {
    int num_tasks, per_task;
    const ms_best_question *questions; /* (num_tasks * per_task), task by task */
    bool *answered;                    /* (num_tasks * per_task) */
    ms_best_plan *answers;             /* (num_tasks * per_task) */
} ms_plan_sweep;

static inline int ms_plan_sweep_num(const ms_plan_sweep *sweep)
{
    return sweep->num_tasks * sweep->per_task;
}

/* Choices for a task, as indices of points; -1: none. Points that break the deadline or
 * the budget are no choices. With a campaign, time is that of the campaign and cost its
 * money, or its GPU-hours if no point of the task has a price; points without a price are
 * neither cheapest nor in the Pareto set if others have one. Without a campaign, time and
 * cost are seconds and GPU-seconds of a token. */
typedef struct ms_plan_sweep_choice {
    int fastest;  /* least time */
    int cheapest; /* least cost */
    int fewest;   /* fewest GPUs; of equal ones the fastest */
    int num_pareto;
    int *pareto; /* (num_pareto): no other is as good in time and cost, better in one */
} ms_plan_sweep_choice;
ms_plan_sweep_choice ms_plan_sweep_choose(ms_arena *arena, const ms_plan_sweep *sweep,
                                          int task);

/* ---- answers kept in a file ---- */

typedef struct ms_plan_sweep_state ms_plan_sweep_state;

/* Opens a file of answers, one JSON object a line, which is made if it is missing, and
 * takes those of the sweep's questions; other lines stay, and a last line that was not
 * completed is cut off. *num_known: number of answers taken. MS_EIO; MS_EINPUT for a
 * file that holds other things. A plan is predicted anew, so that its figures are those of the program and data
 * now; that it is the best is as the file says. */
ms_status ms_plan_sweep_state_open(ms_ctx *cx, const char *path, ms_plan_sweep *sweep,
                                   ms_plan_sweep_state **out, int *num_known);
/* Appends an answer, and has it written before it returns. */
ms_status ms_plan_sweep_state_add(ms_plan_sweep_state *state, int index,
                                  const ms_best_plan *answer);
void ms_plan_sweep_state_close(ms_plan_sweep_state *state);

#endif
