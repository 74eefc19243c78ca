/* Read-only data that all ranks of a run share: the model blocks of every stage, and
 * properties of the schedule's actions. */
#ifndef MS_EXEC_RUNNER_JOB_H
#define MS_EXEC_RUNNER_JOB_H

#include "exec/runner/block_plan.h"
#include "exec/runner/runner.h"

typedef struct ms_job_stage {
    int num_blocks; /* number of blocks; 0: the stage only passes its input on */
    const ms_block_plan *const *blocks; /* (num_blocks), in the order in which they run */
    long first_layer;
    bool has_embedding;
} ms_job_stage;

/* Tags of messages between two ranks, in this order: from 0 two per stage and micro-batch
 * (activations, their gradients); from `first_copy` gradients between the two copies of a
 * stage, `blocks` tags per stage; from `tied` gradients of a tied embedding matrix. */
typedef struct ms_job_tags {
    long first_copy, tied;
    int blocks;
} ms_job_tags;

typedef struct ms_job {
    const ms_planned *planned;
    const ms_runner_options *options;
    const ms_backend_job *backend;
    const ms_job_stage *stages; /* all stages of the model, in order */
    /* predicted costs of each action; for a forward-backward pair, of the forward */
    const ms_slot_cost *const *cost_of_action;
    /* [action]: whether it completes the weight gradients of its stage for this step */
    const bool *is_last_backward;
    ms_job_tags tags;
    /* [stored token]: its position in the sequence; NULL if tokens are stored in order */
    const long *positions;
    const ms_capacity *capacity; /* ms_op_call.capacity */
    bool overlaps; /* parameter gathers and gradient reductions overlap with compute */
    bool gathers_once; /* parameters are gathered once a step, at its start */
} ms_job;

/* MS_EINPUT if a step has more messages than there are tags. */
ms_status ms_job_check_tags(ms_ctx *cx, const ms_job *job);

/* MS_EINPUT if all ranks together would record more slices of a step than
 * MS_MAX_RECORDS, which take 64 bytes each, and up to four times as much while lists grow:
 * rank 0 collects them. */
#define MS_MAX_RECORDS 16000000L
ms_status ms_job_check_records(ms_ctx *cx, const ms_job *job);

/* Makes the data that all ranks of a run share, in the arena. */
ms_job ms_job_make(ms_arena *arena, const ms_backend_job *backend,
                   const ms_planned *planned, const ms_runner_options *options);

/* The model layer of block `block` of a stage; -1 for embedding and head. */
long ms_job_layer(const ms_job_stage *stage, int block);

#endif
