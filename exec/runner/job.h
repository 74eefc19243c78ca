/* Read-only data that all ranks of a run share: the model blocks of every stage, and
 * properties of the schedule's actions. */
#ifndef MS_EXEC_RUNNER_JOB_H
#define MS_EXEC_RUNNER_JOB_H

#include "exec/runner/block_plan.h"
#include "exec/runner/runner.h"

typedef struct ms_job_stage {
    int num_parts; /* number of blocks; 0 if the stage only passes its input on */
    const ms_block_plan *const *parts; /* (num_parts), in the order in which they run */
    long first_layer;
    bool has_embedding;
} ms_job_stage;

/* Tags that distinguish messages between two ranks: first those between stages
 * (exec/runner/handover.c), two per stage and micro-batch, then gradients of model blocks with
 * copies on other ranks (exec/runner/step_end.c), `parts` per stage, then gradients of a tied
 * matrix. */
typedef struct ms_job_tags {
    long first_copy, tied;
    int parts;
} ms_job_tags;

typedef struct ms_job {
    const ms_planned *planned;
    const ms_runner_options *options;
    const ms_backend_job *backend;
    const ms_job_stage *stages; /* all stages of the model */
    /* costs of each action's slot; for a forward-backward pair, those of the forward */
    const ms_slot_cost *const *cost_of_action;
    /* whether the gradients of an action's stage are complete afterwards */
    const bool *is_last_backward;
    ms_job_tags tags;
    const long *positions; /* position of each stored index; NULL if identical */
    bool overlaps; /* communication of parameters and gradients overlaps with compute */
    bool gathers_once; /* parameters are gathered once, at the start of a step */
} ms_job;

/* MS_EINPUT: a step has more messages than there are tags. */
ms_status ms_job_check_tags(ms_ctx *cx, const ms_job *job);

/* Makes the shared data of a run, in the arena. */
ms_job ms_job_make(ms_arena *arena, const ms_backend_job *backend,
                   const ms_planned *planned, const ms_runner_options *options);

/* The model layer of a block of a stage; -1 for embedding and head. */
long ms_job_layer(const ms_job_stage *stage, int part);

#endif
