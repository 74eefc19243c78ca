/* Folder exec/runner: executes the actions of a schedule rank by rank and joins measured
 * with predicted times; no kernels.
 *
 * Runs the training steps of a plan on a backend, with the same layer programs, schedules
 * and sharding as predictions. */
#ifndef MS_EXEC_RUNNER_RUNNER_H
#define MS_EXEC_RUNNER_RUNNER_H

#include "exec/core/backend.h"
#include "exec/core/ledger.h"
#include "exec/core/record.h"
#include "exec/params/names.h"
#include "exec/params/safetensors.h"
#include "exec/params/tokens.h"

/* Progress of a run within its steps. */
typedef struct ms_run_position {
    long step; /* index of the step, from 0 */
    /* rank 0's schedule actions in this step: finished, and in all */
    int num_actions_done, num_actions;
    double loss; /* loss of a finished step; NaN while it runs */
} ms_run_position;

typedef struct ms_runner_options {
    ms_real_type type;
    long num_steps;
    ms_initial initial;
    ms_tokens tokens;
    /* constants of the plan's optimizer; the runner sets gradient_scale and step */
    ms_adamw optimizer;
    double clip_norm; /* largest norm of all gradients; 0: no clipping */
    bool balanced_routing;
    /* a reference of a run whose experts drop copies: its plan, by whose ranks tokens are
     * grouped (ms_capacity); NULL: the plan itself */
    const ms_plan *grouped_as;
    /* ms_rank.orthogonal_shares: a reference of a run with tp needs its tp and etp */
    long orthogonal_shares[2];
    /* whether to round initial weights to bf16: an fp32 reference of a bf16 run needs
     * this to start from equal weights */
    bool weights_in_bf16;
    bool wants_weights, wants_gradients,
        /* which whole tensors the outcome shall contain: initial weights, first step's
         * gradients, weights after the last step */
        wants_updated;
    /* initial weights; NULL: random ones, those of adapters too if the file has none */
    const ms_safe_file *load;
    /* index of the first measured and recorded step; earlier ones are warm-up */
    long first_recorded_step;
    bool replays; /* the backend carries one rank alone: the outcome has its actions */
    volatile const int *interrupted; /* set by a signal handler; NULL: never */
    /* seconds after an interrupt in which the running step may still finish */
    double grace_s;
    void (*progress)(void *state,
                     /* called by rank 0 to report progress; NULL if none */
                     const ms_run_position *at);
    void *progress_state;
} ms_runner_options;

/* Results of one rank of a run. */
typedef struct ms_rank_outcome {
    long rank;
    ms_ledger ledger;
    int num_samples;
    const ms_ledger_sample *samples; /* memory samples of the last step */
    const double *step_s; /* times of finished steps, by the rank's own clock */
    ms_recorder recorder;
} ms_rank_outcome;

/* Parts of a step after its actions. */
enum {
    MS_STEP_REDUCES, /* waiting until gradients are complete */
    MS_STEP_UPDATES, /* norm of gradients and optimizer */
    MS_NUM_STEP_ENDS
};

/* How a file of initial weights (ms_runner_options.load) differs from the run's weights. */
typedef struct ms_loaded_weights {
    int num_drawn;            /* tensors of adapters that it lacks: all of them, or 0 */
    int num_unread;           /* tensors that are no weight of the run */
    const char *first_unread; /* the first one's name; NULL: none */
} ms_loaded_weights;

typedef struct ms_outcome {
    /* steps finished by all ranks of this process; fewer than num_steps if interrupted */
    long steps_done;
    /* whether a step was broken off: other processes' ranks then have no results */
    bool broken_off;
    double *losses; /* (steps_done): mean over all tokens of the global batch */
    /* (steps_done, num_modules): the same of each module of multi-token prediction, not
     * weighted; tokens at a sequence's end that have no target add 0 */
    double *module_losses;
    int num_modules;
    double *gradient_norms; /* (steps_done): global norm before clipping */
    double *step_s;         /* (steps_done): time of the slowest rank */
    /* (steps_done): time between the ends of steps by the host's clock, on rank 0; NaN
     * without values, whose backend has no such time, and in other processes */
    double *wall_s;
    long num_ranks; /* ranks of this process */
    ms_rank_outcome *ranks;
    /* replays: seconds of one rank's actions, in the order of its list, then from the
     * last one until gradients are complete, then of the update, in each step, shape
     * (steps_done, num_actions + MS_NUM_STEP_ENDS); NULL: not wanted */
    int num_actions;
    double *action_s;
    /* whole tensors that were wanted, in the process of rank 0 */
    ms_safe_file weights, gradients, updated;
    ms_loaded_weights loaded;
} ms_outcome;

/* MS_EINPUT with the first choice of the plan that no run executes, such as CUDA
 * graphs. */
ms_status ms_runner_check_plan(ms_ctx *cx, const ms_plan *plan);

/* Runs a plan (opened by ms_planned_open) under the software stack's conventions, on a
 * backend that is open with the plan's ranks. The outcome lives in cx->arena. MS_EIO: a
 * rank failed (named with its action), lack of memory, a loss that is not finite (with
 * step and rank). MS_EINPUT: the model has something that cannot be executed.
 * MS_EINTERRUPTED: stopped, with the steps done so far, perhaps none. */
ms_status ms_runner_run(ms_ctx *cx, ms_backend_job *job, const ms_planned *planned,
                        const ms_runner_options *options, ms_outcome *out);

#endif
