/* Executes the steps of a plan on a backend, by the same layer programs, schedules and
 * sharding as predictions. */
#ifndef MS_EXEC_RUNNER_RUNNER_H
#define MS_EXEC_RUNNER_RUNNER_H

#include "exec/core/backend.h"
#include "exec/core/ledger.h"
#include "exec/core/record.h"
#include "exec/params/names.h"
#include "exec/params/safetensors.h"
#include "exec/params/tokens.h"

/* Progress of the run. */
typedef struct ms_run_position {
    long step; /* index of the step, from 0 */
    /* actions of the step on rank 0; equal if the step is done */
    int num_actions_done, num_actions;
    double loss; /* loss of a finished step; NaN before */
} ms_run_position;

typedef struct ms_runner_options {
    ms_real_type type;
    long num_steps;
    ms_initial initial;
    ms_tokens tokens;
    ms_adamw optimizer; /* gradient_scale and step are set by the runner */
    double clip_norm;   /* limit of the norm of all gradients; 0: no clipping */
    bool balanced_routing;
    /* initial weights are rounded to bf16, for references of bf16 runs, which compute
     * with such weights */
    bool weights_in_bf16;
    bool wants_weights, wants_gradients,
        /* whole tensors wanted in the outcome: weights before the first step, gradients
         * of the first step, weights after the last */
        wants_updated;
    const ms_safe_file *load; /* initial weights; NULL: random initial values */
    /* earlier steps are warm-up; steps from it on are measured and recorded */
    long first_recorded_step;
    volatile const int *interrupted; /* set by a signal handler; NULL if never */
    /* seconds that a step may continue after the interrupt; a step that ends in time ends
     * on all ranks */
    double grace_s;
    void (*progress)(void *state,
                     /* called by rank 0 to report progress; NULL if none */
                     const ms_run_position *at);
    void *progress_state;
} ms_runner_options;

/* Outcome of one rank. */
typedef struct ms_rank_outcome {
    long rank;
    ms_ledger ledger;
    int num_samples;
    const ms_ledger_sample *samples; /* memory samples of the last step */
    const double *step_s; /* time of each finished step by the rank's own clock */
    ms_recorder recorder;
} ms_rank_outcome;

typedef struct ms_outcome {
    /* on all ranks of this process; fewer than requested if interrupted */
    long steps_done;
    /* interrupted within a step: ranks of other processes send no results */
    bool broken_off;
    double *losses; /* mean loss over all tokens of the global batch (steps_done) */
    double *gradient_norms; /* global norm before clipping (steps_done) */
    double *step_s;         /* time of the slowest rank (steps_done) */
    long num_ranks;         /* number of ranks of this process */
    ms_rank_outcome *ranks;
    /* whole tensors, in the process of rank 0 */
    ms_safe_file weights, gradients, updated;
} ms_outcome;

/* Runs a plan that is open (ms_planned_open) under the stack's conventions, on a backend
 * that is open with the plan's world. The outcome lives in cx->arena. MS_EIO: a rank
 * failed (named with its action), lack of memory, a loss that is not finite (with step
 * and rank). MS_EINPUT: the model has something that cannot be executed. MS_EINTERRUPTED:
 * stopped, with the steps done so far, perhaps none. */
ms_status ms_runner_run(ms_ctx *cx, ms_backend_job *job, const ms_planned *planned,
                        const ms_runner_options *options, ms_outcome *out);

#endif
