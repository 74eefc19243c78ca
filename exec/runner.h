/* Executes the steps of a plan on a backend: the same layer programs, schedules and
 * sharding that predictions are made from. */
#ifndef MS_EXEC_RUNNER_H
#define MS_EXEC_RUNNER_H

#include "exec/backend.h"
#include "exec/ledger.h"
#include "exec/names.h"
#include "exec/record.h"
#include "exec/safetensors.h"
#include "exec/tokens.h"

/* How far the run is. */
typedef struct ms_run_position {
    long step; /* from 0 */
    /* of its actions on rank 0; all: the step is done */
    int num_actions_done, num_actions;
    double loss; /* of a step that is done */
} ms_run_position;

typedef struct ms_runner_options {
    ms_real_type type;
    long num_steps;
    ms_initial initial;
    ms_tokens tokens;
    ms_adamw optimizer; /* gradient_scale and step are set by the runner */
    double clip_norm;   /* of all gradients; 0: no clip */
    bool balanced_routing;
    /* they begin rounded to bf16: a reference of runs in bf16, which compute with such,
     * has the same */
    bool weights_in_bf16;
    bool wants_weights, wants_gradients,
        /* whole tensors in the outcome: before the first step, of the first step,
         * after the last */
        wants_updated;
    const ms_safe_file *load; /* weights to begin with; NULL: initial values */
    /* steps before it warm up; measured and recorded from it on */
    long first_recorded_step;
    volatile const int *interrupted; /* set by a signal; NULL: never */
    /* so long a step goes on after it: one that ends in time ends on all ranks */
    double grace_s;
    void (*progress)(void *state,
                     const ms_run_position *at); /* by rank 0; NULL: nobody asks */
    void *progress_state;
} ms_runner_options;

/* Of one rank. */
typedef struct ms_rank_outcome {
    long rank;
    ms_ledger ledger;
    int num_samples;
    const ms_ledger_sample *samples; /* over the last step */
    const double *step_s;            /* (steps done): its own clock's */
    ms_recorder recorder;
} ms_rank_outcome;

typedef struct ms_outcome {
    /* on all ranks of this process; fewer than asked for when interrupted */
    long steps_done;
    /* in the middle of a step: ranks of other processes are not asked for more */
    bool broken_off;
    double *losses;         /* (steps_done): mean over all tokens of the global batch */
    double *gradient_norms; /* (steps_done): before the clip */
    double *step_s;         /* (steps_done): of the slowest rank */
    long num_ranks;         /* carried by this process */
    ms_rank_outcome *ranks;
    ms_safe_file weights, gradients, updated; /* in the process of rank 0 */
} ms_outcome;

/* The plan is open (ms_planned_open) with the stack's habits; `backend` must be open on
 * the plan's world. The outcome lives in cx->arena. MS_EIO: a rank failed (named with its
 * action), no memory, a loss that is not finite (with step and rank). MS_EINPUT: the
 * model has something that cannot be executed. MS_EINTERRUPTED: with the steps done so
 * far, perhaps none. */
ms_status ms_runner_run(ms_ctx *cx, ms_backend_job *job, const ms_planned *planned,
                        const ms_runner_options *options, ms_outcome *out);

#endif
