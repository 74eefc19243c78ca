/* One rank on its way through a step: what the files that walk its actions share. */
#ifndef MS_EXEC_RANK_RUN_H
#define MS_EXEC_RANK_RUN_H

#include "exec/job.h"
#include "exec/part_run.h"

/* A stage that the rank holds. */
typedef struct ms_rank_stage {
    int stage; /* of the schedule */
    int model_stage;
    int num_parts;
    ms_rank_part *parts;
    double passed_bytes; /* without parts: what it hands on, either way */
    const ms_stage *sums;
    ms_event *gathered; /* (num_parts): of parameters that are gathered once a step */
} ms_rank_stage;

/* One micro-batch of a stage, from forward to the gradients of weights. */
typedef struct ms_flight {
    int stage, microbatch;
    ms_arena *arena;
    ms_part_cells *parts; /* (num_parts) */
    ms_batch batch;
    struct ms_flight *next;
} ms_flight;

/* A send whose memory is not free yet. */
typedef struct ms_sent {
    ms_event done;
    ms_handed what;
    const char *name;
    struct ms_sent *next;
} ms_sent;

/* A transfer of complete gradients that the end of the step waits for. */
typedef struct ms_last_move {
    const char *name; /* sim/move_names.h */
    unsigned char stream;
    ms_event done;
} ms_last_move;

typedef struct ms_rank_run {
    ms_rank rank;
    const ms_job *job;
    int pipeline_rank;
    int num_stages; /* chunks */
    ms_rank_stage *stages;
    int num_parts; /* of all stages */
    ms_rank_part **parts;
    ms_flight *flights;      /* under way */
    ms_flight *idle_flights; /* to be used again */
    /* (placed stages, micro-batches): between stages of this rank */
    ms_handed *activations;
    ms_handed *gradients;
    ms_sent *sent, *idle_sent;
    ms_unit_rooms *rooms;
    void *receive_buffer;
    double receive_bytes;
    void *workspace;
    double workspace_bytes;
    /* of the step */
    long step;
    ms_event ready;      /* what the rank's next action waits for */
    ms_event part_start; /* after it the part at work began */
    ms_event reduced;    /* after the reductions that were started so far; 0: none */
    int num_last_moves;  /* of parts, up to three each */
    ms_last_move *last_moves;
    unsigned long num_batches; /* so far */
    /* when it first saw that the run is to stop, by ms_clock_s; NaN: not yet */
    double asked_at_s;
    long first_slice; /* of the recorder, in this step */
    /* of the run */
    int num_samples, room_samples;
    ms_ledger_sample *samples;
    ms_recorder recorder;
} ms_rank_run;

/* A forward or backward on its way through the parts of a stage. */
typedef struct ms_walk_run {
    ms_rank_run *r;
    ms_rank_stage *stage;
    ms_flight *flight;
    ms_part_pass pass;
    int bill_pass;
    bool inputs, weights; /* halves of a backward */
    bool first_forward, last_backward;
    bool receives;     /* what its first part needs, from another rank */
    int part;          /* at work; of a backward counted from the last */
    int entry;         /* -1: the part has not begun */
    ms_handed carried; /* between parts: activations, or their gradients */
    ms_event ready;    /* its last task */
    int num_arrived;   /* and what else its next task waits for */
    int room_arrived;
    /* [0] is `ready`'s place in a list of all; in the flight's arena */
    ms_event *arrived;
    ms_event params; /* the gather of the next part; 0: none */
    /* about when the next entry can start, as predicted; to take turns in a pair */
    double when_s;
} ms_walk_run;

/* ---- walk.c ---- */
ms_rank_part *ms_walk_run_part(const ms_walk_run *w, int part);
void ms_walk_run_arrives(ms_walk_run *w, ms_event event);
/* Compute waits for what the walk's next task waits for. */
ms_status ms_walk_run_settle(ms_walk_run *w);
/* What the next task waits for, as a list for a transfer's `after`; good until the next arrival. */
const ms_event *ms_walk_run_after(ms_walk_run *w, int *num);
/* On a virtual clock: compute is taken for so long. */
ms_status ms_walk_run_spend(ms_walk_run *w, double seconds);
ms_status ms_walk_run_alone(ms_walk_run *w);
ms_status ms_walk_run_pair(ms_walk_run *forward, ms_walk_run *backward);

/* ---- walk_state.c: parameters and gradients ---- */
ms_status ms_state_gather_all(ms_rank_run *r);
/* Before and after the entries of the part at work, and after the last part. */
ms_status ms_state_before_part(ms_walk_run *w);
ms_status ms_state_after_part(ms_walk_run *w);
ms_status ms_state_after_walk(ms_walk_run *w);
/* After the last action: what could not be reduced with the last backward of its stage. */
ms_status ms_state_reduce_late(ms_rank_run *r);

/* ---- handover.c: between stages ---- */
ms_status ms_receive_for(ms_walk_run *w, ms_handed *out);
ms_status ms_send_from(ms_walk_run *w, ms_event after);
ms_status ms_sends_end(ms_rank_run *r);

/* ---- action.c ---- */
/* MS_EINTERRUPTED, without a message, when the run is to stop and a step has had its
 * time to end. */
ms_status ms_rank_run_go_on(ms_rank_run *r);
ms_status ms_rank_run_action(ms_rank_run *r, int index);

/* ---- step_end.c ---- */
/* After the last action: gradients complete, norm, update. */
typedef struct ms_step_outcome {
    double loss, gradient_norm;
    bool interrupted;
} ms_step_outcome;
/* All gradients are where they belong; the norm and the update come after. */
ms_status ms_rank_run_complete_gradients(ms_rank_run *r);
ms_status ms_rank_run_end_step(ms_rank_run *r, ms_step_outcome *out);

/* ---- rank_run.c ---- */
/* Makes seconds of what the step's slices and samples, and its start and end, have of the
 * rank's clock. */
ms_status ms_rank_run_read_clock(ms_rank_run *r, double *start_s, double *end_s);
/* Sums of a step that stay on the device: squares of gradients, then losses by
 * micro-batch (the last slot has all further ones). */
#define MS_SQUARES_SLOT 0
int ms_loss_slot(int microbatch);
ms_status ms_rank_run_open(ms_rank_run *r, ms_ctx *cx, const ms_job *job,
                           ms_device_rank *device, long rank);
ms_status ms_rank_run_step(ms_rank_run *r, long step, ms_step_outcome *out);
void ms_rank_run_close(ms_rank_run *r);

/* Samples of memory in a step: two an action. */
int ms_samples_of_rank(const ms_schedule *schedule, int pipeline_rank);

ms_flight *ms_flight_begin(ms_rank_run *r, const ms_rank_stage *stage, int microbatch);
ms_flight *ms_flight_of(ms_rank_run *r, int stage, int microbatch);
void ms_flight_end(ms_rank_run *r, ms_flight *flight);

/* The rank's clock (ms_backend.now_s) where something is recorded; otherwise 0. */
double ms_rank_run_clock(const ms_rank_run *r);
/* From a time of that clock until now: a slice of the record. */
void ms_rank_run_record(ms_rank_run *r, ms_recorded slice, double start_s);
/* The same of time in which compute waited for a collective that is no node; `goes_on`:
 * another slice counts it. */
void ms_rank_run_record_wait(ms_rank_run *r, ms_stream stream, const char *name,
                             bool goes_on, double start_s);

#endif
