/* State of one rank during a step, shared by the files that execute its actions. */
#ifndef MS_EXEC_RUNNER_RANK_RUN_H
#define MS_EXEC_RUNNER_RANK_RUN_H

#include "exec/runner/block_run.h"
#include "exec/runner/job.h"

/* A pipeline stage that the rank holds. */
typedef struct ms_rank_stage {
    int stage; /* index of the stage in the schedule */
    int model_stage;
    int num_blocks;
    ms_rank_block *blocks;
    /* for a stage without blocks: bytes of the activation or gradient passed on */
    double passed_bytes;
    const ms_stage *sums;
    /* [block]: end of its parameter gather, if gathered once a step */
    ms_event *gathered;
} ms_rank_stage;

/* A micro-batch in a stage, from its forward to its gradients of weights. */
typedef struct ms_flight {
    int stage, microbatch;
    ms_arena *arena;
    ms_block_cells *blocks; /* (num_blocks): tensors of each block */
    ms_batch batch;
    struct ms_flight *next;
} ms_flight;

/* A send to another stage, not finished: its memory is not free yet. */
typedef struct ms_sent {
    ms_event done;
    ms_handed what;
    const char *name;
    struct ms_sent *next;
} ms_sent;

/* A receive from another stage, started before the action that needs it. */
typedef struct ms_early_receive {
    bool is_started;
    ms_event done;
} ms_early_receive;

/* A reduction of the step's complete gradients; the end of the step waits for it. */
typedef struct ms_last_move {
    const char *name; /* a name of sim/simulate/move_names.h */
    unsigned char stream;
    ms_event done;
} ms_last_move;

typedef struct ms_rank_run {
    ms_rank rank;
    const ms_job *job;
    int pipeline_rank;
    int num_stages; /* stages on the rank (virtual stages) */
    ms_rank_stage *stages;
    int num_blocks; /* number of blocks of all its stages */
    ms_rank_block **blocks;
    ms_flight *flights;      /* micro-batches in progress on the rank */
    ms_flight *idle_flights; /* memory of finished micro-batches, for reuse */
    /* [stage, micro-batch]: tensors passed to another stage of this same rank */
    ms_handed *activations;
    ms_handed *gradients;
    ms_sent *sent, *idle_sent;
    ms_unit_buffers *buffers;
    /* a message of activations and one of gradients arrive in halves of the buffer */
    void *receive_buffer;
    double receive_bytes;
    ms_early_receive early[2]; /* [whether gradients] */
    void *workspace;
    double workspace_bytes;
    /* ---- state of the step ---- */
    long step;
    int action;           /* index of the current action in the schedule */
    ms_event ready;       /* event that the rank's next action waits for */
    ms_event block_start; /* event after which the current block began */
    ms_event reduced;     /* end of the gradient reduction started last; 0 if none */
    int num_last_moves;   /* length of `last_moves`, at most three per block */
    ms_last_move *last_moves;
    unsigned long num_batches; /* micro-batches begun so far */
    /* time (ms_clock_s) when the rank noticed a request to stop; NaN: none noticed */
    double asked_at_s;
    long first_slice; /* index of the recorder's first slice of this step */
    /* ---- state of the run ---- */
    int num_samples, max_samples;
    ms_ledger_sample *samples;
    ms_recorder recorder;
} ms_rank_run;

/* A forward or backward of a micro-batch in progress through the blocks of a stage. */
typedef struct ms_walk_run {
    ms_rank_run *r;
    ms_rank_stage *stage;
    ms_flight *flight;
    ms_block_pass pass;
    int bill_pass;
    /* whether a backward computes input gradients; weight gradients */
    bool inputs, weights;
    bool first_forward, last_backward;
    /* current block in order of execution; a backward starts at the stage's last */
    int block;
    int entry; /* index of the block's current entry; -1 before the block begins */
    ms_handed carried; /* activations or gradients passed between two blocks */
    bool reduces;      /* a block's gradients were reduced for this micro-batch */
    bool received;     /* `carried` holds the walk's input before its first block */
    ms_event ready;    /* event of the last kernel or transfer */
    int num_arrived;   /* other events that the next task waits for */
    int max_arrived;
    ms_event *arrived; /* the num_arrived events, in the micro-batch's arena */
    ms_event params;   /* end of the next block's parameter gather; 0 if none */
    /* overlapped pair: its number of pairs of layers, and for how long (seconds) each of
     * this half's layers waits for the host, in the order of execution */
    long num_pairs;
    double *pair_host_s;
    /* predicted start of the next entry, by which two interleaved walks are ordered */
    double when_s;
} ms_walk_run;

/* ---- walk.c ---- */
ms_rank_block *ms_walk_run_block(const ms_walk_run *w, int block);
void ms_walk_run_arrives(ms_walk_run *w, ms_event event);
/* Makes compute wait for all events on which the walk's next task depends. */
ms_status ms_walk_run_wait_arrivals(ms_walk_run *w);
/* Events that the walk's next kernel or transfer depends on, *num of them, for
 * ms_backend.start; valid until ms_walk_run_arrives is called. */
const ms_event *ms_walk_run_after(ms_walk_run *w, int *num);
/* On a virtual clock, keeps the compute stream busy for some seconds. */
ms_status ms_walk_run_spend(ms_walk_run *w, double seconds);
ms_status ms_walk_run_alone(ms_walk_run *w);
ms_status ms_walk_run_pair(ms_walk_run *forward, ms_walk_run *backward);

/* ---- walk_state.c: parameters and gradients ---- */
ms_status ms_state_gather_all(ms_rank_run *r);
/* Gather parameters, reduce gradients: before a block, after it, and after all blocks. */
ms_status ms_state_before_block(ms_walk_run *w);
ms_status ms_state_after_block(ms_walk_run *w);
ms_status ms_state_after_walk(ms_walk_run *w);
/* Called after the last action of a step: reduces gradients that could not be reduced
 * with the last backward of their stage. */
ms_status ms_state_reduce_late(ms_rank_run *r);

/* ---- handover.c: between stages ---- */
ms_status ms_receive_for(ms_walk_run *w, ms_handed *out);
/* Starts the receives of the first later action that needs a message of another rank,
 * once the current action has its own, so that they pass during its kernels. */
ms_status ms_receive_ahead(ms_rank_run *r);
/* Receives the inputs of both halves of a pair; each half waits for both. */
ms_status ms_receive_for_pair(ms_walk_run *forward, ms_walk_run *backward);
/* Counts the result of a walk that has ended as workspace instead of activations, if it
 * goes to another stage. */
void ms_result_leaves(ms_walk_run *w);
/* Sends such a result, or stores it for a stage of the same rank. */
ms_status ms_send_from(ms_walk_run *w, ms_event after);
ms_status ms_sends_end(ms_rank_run *r);

/* ---- action.c ---- */
/* The rank's stage number `stage` of the schedule; NULL if it is on another rank. */
ms_rank_stage *ms_rank_run_stage(ms_rank_run *r, int stage);
/* Looks for a request to stop. Returns MS_EINTERRUPTED, without a message, if there is
 * one and the grace time, in which the step might have finished, has passed. */
ms_status ms_rank_run_go_on(ms_rank_run *r);
ms_status ms_rank_run_action(ms_rank_run *r, int index);

/* ---- step_end.c ---- */
typedef struct ms_step_outcome {
    double loss, gradient_norm;
    /* mean over all tokens of the loss of each module of multi-token prediction */
    double module_losses[MS_MAX_NEXTN_LAYERS];
    bool interrupted;
} ms_step_outcome;
/* Completes the step's gradients on the ranks that update parameters, before gradient
 * norm and update. */
ms_status ms_rank_run_complete_gradients(ms_rank_run *r);
ms_status ms_rank_run_end_step(ms_rank_run *r, ms_step_outcome *out);

/* ---- rank_run.c ---- */
/* Tokens of the present step that are no padding, over all ranks. */
double ms_rank_run_step_tokens(const ms_rank_run *r);
/* Converts the step's recorded times from device events to seconds: in time slices,
 * memory samples and `stamps`. Adds the slices of the step's transfers to the record. */
ms_status ms_rank_run_read_clock(ms_rank_run *r, double *stamps, long num);
/* Slot of a micro-batch's loss; micro-batches beyond the last slot share it. */
int ms_loss_slot(int microbatch);
ms_status ms_rank_run_open(ms_rank_run *r, ms_ctx *cx, const ms_job *job,
                           ms_device_rank *device, long rank);
ms_status ms_rank_run_step(ms_rank_run *r, long step, ms_step_outcome *out);
void ms_rank_run_close(ms_rank_run *r);

/* Number of memory samples that a rank takes in a step: two per schedule action. */
int ms_samples_of_rank(const ms_schedule *schedule, int pipeline_rank);

ms_flight *ms_flight_begin(ms_rank_run *r, const ms_rank_stage *stage, int microbatch);
ms_flight *ms_flight_of(ms_rank_run *r, int stage, int microbatch);
void ms_flight_end(ms_rank_run *r, ms_flight *flight);

/* Time now by the rank's clock (ms_backend.now_s); 0 in steps that are not recorded. */
double ms_rank_run_clock(const ms_rank_run *r);
/* Adds a time slice from start_s until now to the rank's record. */
void ms_rank_run_record(ms_rank_run *r, ms_recorded slice, double start_s);
/* Records from `start_s` until now a wait of compute for a collective that is no node.
 * `goes_on`: another slice counts this collective. */
void ms_rank_run_record_wait(ms_rank_run *r, ms_stream stream, const char *name,
                             bool goes_on, double start_s);

#endif
