/* What all ranks of a run share, read only: the parts of every stage, and where steps of
 * the schedule lie. */
#ifndef MS_EXEC_JOB_H
#define MS_EXEC_JOB_H

#include "exec/part_plan.h"
#include "exec/runner.h"

typedef struct ms_job_stage {
    int num_parts;                    /* 0: the stage hands on what it gets */
    const ms_part_plan *const *parts; /* (num_parts), in the order in which they run */
    long first_layer;
    bool has_embedding;
} ms_job_stage;

/* Messages between two ranks are told apart by their tags: first those between stages
 * (exec/handover.c), two a stage and micro-batch, then the gradients of parts whose
 * copies are on other ranks (exec/step_end.c), `parts` a stage, then those of a tied matrix. */
typedef struct ms_job_tags {
    long first_copy, tied;
    int parts;
} ms_job_tags;

typedef struct ms_job {
    const ms_planned *planned;
    const ms_runner_options *options;
    const ms_backend_job *backend;
    const ms_job_stage *stages; /* by stage of the model */
    /* by action: of its first step; of a pair the forward's half */
    const ms_step_cost *const *cost_of_action;
    const bool *is_last_backward; /* by action: its stage's gradients are then complete */
    ms_job_tags tags;
    const long *positions; /* of stored indices; NULL: the same */
    bool overlaps;         /* parameters and gradients move beside compute */
    bool gathers_once;     /* parameters, at the start of a step */
} ms_job;

/* MS_EINPUT: more messages in a step than there are tags. */
ms_status ms_job_check_tags(ms_ctx *cx, const ms_job *job);

/* Lives in the arena. */
ms_job ms_job_make(ms_arena *arena, const ms_backend_job *backend,
                   const ms_planned *planned, const ms_runner_options *options);

/* The layer of the model that a part of a stage is; -1: embedding or head. */
long ms_job_layer(const ms_job_stage *stage, int part);

#endif
