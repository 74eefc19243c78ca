/* The step of a whole job from the measured actions of ranks that executed alone
 * (exec/backends/modelled.h): durations of stages are medians over micro-batches and
 * steps, and the schedule's replay puts them together as it does predicted ones. */
#ifndef MS_EXEC_RUNNER_RECOMPOSE_H
#define MS_EXEC_RUNNER_RECOMPOSE_H

#include "exec/runner/runner.h"
#include "sim/step/replay.h"

/* Kinds of actions whose durations are compared. */
typedef enum ms_action_time {
    MS_TIME_FORWARD,
    MS_TIME_BACKWARD, /* unsplit */
    MS_TIME_INPUT,
    MS_TIME_WEIGHT,
    MS_NUM_ACTION_TIMES
} ms_action_time;
/* "forward" "backward" "backward for inputs" "backward for weights", then NULL */
extern const char *const ms_action_time_names[];
/* Seconds of such an action that is neither the first nor the last of its stage. */
double ms_action_time_s(const ms_stage_times *times, ms_action_time which);

typedef struct ms_recomposition {
    ms_arena *arena;
    const ms_planned *planned;
    int num_ranks, num_stages;       /* ranks of the pipeline; its stages, with copies */
    const ms_stage_times *predicted; /* (num_stages) */
    ms_stage_times *times; /* (num_stages): measured durations, else predicted */
    /* (num_stages): kinds of actions of which a stage has measured ones of its own */
    bool (*is_measured)[MS_NUM_ACTION_TIMES];
    /* (num_ranks): pipeline rank that executed the stages of each; -1: none, predicted */
    int *measured_by;
    double *reduces_s,
        *update_s; /* (num_ranks): after the actions; measured ranks only */
    double predicted_step_s;
    double step_s; /* recomposed: set by ms_recompose */
} ms_recomposition;

/* Begins with predictions only. `planned` has every action of its schedule. */
ms_recomposition ms_recomposition_open(ms_arena *arena, const ms_planned *planned);

/* Whether a pipeline rank executes what `other` does: equal stages, chunk by chunk. */
bool ms_recomposition_is_alike(const ms_recomposition *r, int pipeline_rank, int other);

/* Takes the durations measured on a pipeline rank (outcome->action_s, after `warm_up`
 * steps) for it and for ranks alike that have not executed themselves. The predicted
 * gather before a rank's first action is left to the replay, which starts it at once. */
void ms_recomposition_add(ms_recomposition *r, int pipeline_rank,
                          const ms_outcome *outcome, long warm_up);

/* Replays the schedule with the durations: the step ends when the slowest rank's gradients
 * are complete and the slowest update is done. Messages between stages take their
 * predicted time; gathers, reductions and exchanges are in the measured actions. */
void ms_recompose(ms_recomposition *r);

#endif
