/* Declarations shared by the files of the CUDA backend. */
#ifndef MS_EXEC_CUDA_CUDA_BACKEND_PRIV_H
#define MS_EXEC_CUDA_CUDA_BACKEND_PRIV_H

#include "exec/cuda/cuda_backend.h"
#include "exec/cuda/cuda_channels.h"
#include "exec/cuda/cuda_rotary.h"

#include <pthread.h>

typedef struct ms_cuda_job ms_cuda_job;

/* A transfer through host memory, or a receive whose message is not announced yet. */
typedef struct ms_cuda_pending {
    ms_event event;
    ms_transfer transfer;
    /* ---- transfers through host memory ---- */
    bool by_host;
    ms_event inner_event;
    struct ms_cuda_staging *sent, *received; /* pinned buffers; NULL if none */
    /* ---- receives ---- */
    int channel;
    ms_event before; /* event for which the GPU waits before it receives */
    struct ms_cuda_pending *next;
} ms_cuda_pending;

typedef struct ms_cuda_staging {
    void *memory;
    size_t bytes;
    struct ms_cuda_staging *next;
} ms_cuda_staging;

typedef struct ms_cuda_point {
    ms_cuda_event *event; /* NULL: the GPU has reached it, or its transfer is pending */
    ms_cuda_stream *stream;
    ms_cuda_pending *pending;
    /* device memory to free once ms_cuda_wait has waited for the point; NULL if none */
    void *release;
    bool has_transfer;
    ms_transfer transfer;
} ms_cuda_point;

/* Ring buffer of a rank's points (recorded events): event n is ring[n % room]. `first` is
 * the oldest one that the GPU may not have reached yet. */
typedef struct ms_cuda_points {
    ms_cuda_point *ring;
    long room; /* capacity of the ring, a power of two */
    ms_event first, next;
    ms_event last_mark;
    bool compute_moved; /* the compute stream got work after last_mark */
} ms_cuda_points;

/* A time stamp of a rank's GPU; ms_cuda_now_s returned its index plus 1. */
typedef struct ms_cuda_stamp {
    ms_cuda_event *event; /* recorded event; NULL if `seconds` is known */
    double seconds;
} ms_cuda_stamp;

typedef struct ms_cuda_clock {
    ms_cuda_event *anchor; /* past event from which stamps are timed */
    double anchor_s;       /* seconds from the run's begin to `anchor` */
    ms_cuda_stamp *stamps;
    int num, room, first_open; /* all stamps before first_open have been read */
    bool compute_moved;        /* the compute stream got work after the last stamp */
} ms_cuda_clock;

/* A modelled transfer between two timed events of its stream, which give slice.start_s
 * and slice.end_s. */
typedef struct ms_cuda_move {
    ms_cuda_event *begin, *end; /* NULL: not recorded, or read */
    ms_recorded slice;
} ms_cuda_move;

/* Modelled transfers that ms_cuda_take_moves has not taken yet. */
typedef struct ms_cuda_moves {
    ms_cuda_event *anchor; /* an event before all of them, from which they are timed */
    double anchor_s;       /* seconds from the run's begin to `anchor` */
    ms_cuda_move *moves;
    int num, room, first_open; /* all before first_open have been read */
} ms_cuda_moves;

/* A group's NCCL communicator, which runs calls in order, and its last call's stream. */
typedef struct ms_cuda_group {
    ms_cuda_comm *comm;
    ms_cuda_stream *last_stream;
} ms_cuda_group;

/* A message that the GPU received before the program asked for it; linked as sent. */
typedef struct ms_cuda_unexpected {
    int tag;
    long count;
    ms_scalar scalar;
    void *memory;
    struct ms_cuda_unexpected *next;
} ms_cuda_unexpected;

/* A device copy of a sent message; freed after `received`, when its receiver has it. */
typedef struct ms_cuda_copy {
    void *memory;
    ms_cuda_event *received;
    struct ms_cuda_copy *next;
} ms_cuda_copy;

typedef struct ms_cuda_lane {
    long peer;
    bool sends;
    ms_cuda_comm *comm;
    ms_cuda_stream *stream;
    ms_cuda_unexpected *unasked; /* messages received before the program asked for them */
} ms_cuda_lane;

/* Events that time work are apart from those that order it, which are cheaper. */
typedef enum ms_cuda_event_kind {
    MS_CUDA_ORDERS,
    MS_CUDA_TIMES,
    MS_CUDA_NUM_EVENT_KINDS
} ms_cuda_event_kind;

typedef struct ms_cuda_idle_events {
    ms_cuda_event **events;
    int num, room;
} ms_cuda_idle_events;

#define MS_CUDA_BATCHES 16
typedef struct ms_cuda_kept_batch {
    unsigned long number; /* number of the micro-batch; 0 if the entry is empty */
    unsigned long used_at;
    long count, room; /* tokens stored, and capacity in tokens */
    int *tokens, *targets;
    int *staging;        /* tokens and targets in pinned host memory */
    ms_cuda_event *sent; /* end of the last copy to the GPU; NULL: none yet */
} ms_cuda_kept_batch;

#define MS_CUDA_MAX_GROUPS 32

struct ms_device_rank {
    ms_cuda_job *job;
    long rank;
    ms_ctx *cx;            /* the run's context, for errors */
    ms_device_rank *inner; /* this rank of the inner backend; NULL between runs */
    const ms_cuda_driver *driver;
    const ms_cuda_kernels *kernels;
    ms_precision precision;
    ms_arena *arena; /* arena of the rank; lasts as long as the job is open */
    bool is_open, failed;
    ms_status status; /* first error of a call that returns no status */
    int ordinal;
    ms_cuda_device *gpu;
    ms_cuda_stream *compute, *stream[MS_NUM_STREAMS];
    ms_cuda_idle_events idle_events[MS_CUDA_NUM_EVENT_KINDS];
    ms_cuda_memory *memory;
    ms_cuda_points points;
    ms_cuda_clock clock;
    ms_cuda_moves moves;
    ms_cuda_pending *first_pending, **end_pending, *idle_pending;
    ms_cuda_staging *idle_staging;
    /* ---- communicators ---- */
    ms_cuda_comm *world;                   /* for splits only */
    ms_cuda_comm *parents[MS_NUM_STREAMS]; /* parents of kinds that share; NULL: none */
    /* communicator in whose NCCL call this rank waits for others; guarded by job->lock */
    ms_cuda_comm *waits_on;
    int num_groups;
    ms_cuda_group groups[MS_CUDA_MAX_GROUPS];
    int num_lanes;
    ms_cuda_lane *lanes;
    ms_cuda_copy *copies, *idle_copies;
    /* ---- arrays and batches ---- */
    double *sums;      /* (MS_MAX_SUMS) sums of a training step, in device memory */
    void *sum_scratch; /* an array's partial sums, in device memory */
    char *staging[2];  /* pinned buffers for reading and writing arrays */
    size_t staging_bytes[2];
    ms_cuda_attention_use attention;
    bool lacks_fp8; /* some GEMMs that should be in FP8 were computed in bf16 */
    ms_cuda_event *staged[2];
    ms_cuda_kept_batch batches[MS_CUDA_BATCHES];
    unsigned long num_uses;
    unsigned long num_modelled; /* modelled transfers started so far */
    const long *positions;      /* host array that `device_positions` copies */
    int *device_positions;
    ms_cuda_angle_tables angles;
};

struct ms_cuda_job {
    const ms_cuda_backend *backend;
    const ms_cuda_driver *driver;
    ms_backend_job *outer;
    const ms_backend *inner; /* backend that runs the ranks: loop or mpi */
    ms_backend_job inner_job;
    double timeout_s;
    int num_devices;
    bool shares_gpus; /* several ranks share a GPU under NCCL */
    ms_arena *arena;
    ms_cuda_channels channels;
    ms_cuda_ctas ctas;     /* most blocks of NCCL's kernels */
    ms_device_rank *ranks; /* (num_ranks of the world) */
    bool failed;
    ms_cuda_used *used;
    bool *was_used;       /* (num_ranks) whether `used` is set */
    pthread_mutex_t lock; /* guards opening_failed, and waits_on of ranks */
    bool opening_failed;
    ms_rank_main *main;
    void *main_state;
};

/* ---- order: cuda_backend_streams.c ---- */
ms_status ms_cuda_order_open(ms_ctx *cx, ms_device_rank *d);
void ms_cuda_order_close(ms_device_rank *d);
/* Takes an unused event and records it on the stream. */
ms_status ms_cuda_take_recorded(ms_ctx *cx, ms_device_rank *d, ms_cuda_event_kind kind,
                                ms_cuda_stream *stream, ms_cuda_event **out);
/* Fails if this rank failed or was aborted, or if it has learned that another failed. */
ms_status ms_cuda_check_rank(ms_ctx *cx, ms_device_rank *d);
void ms_cuda_keep_status(ms_device_rank *d, ms_status status);
ms_status ms_cuda_take_event(ms_ctx *cx, ms_device_rank *d, ms_cuda_event_kind kind,
                             ms_cuda_event **out);
/* Keeps an event of that kind for reuse; does nothing if it is NULL. */
void ms_cuda_give_event(ms_device_rank *d, ms_cuda_event_kind kind, ms_cuda_event *event);
void ms_cuda_moved(ms_device_rank *d);
/* Records an event after all work enqueued on `stream` so far. `transfer`: the one that
 * the event ends, copied for error messages; NULL if it ends none. */
ms_status ms_cuda_point_make(ms_ctx *cx, ms_device_rank *d, ms_cuda_stream *stream,
                             const ms_transfer *transfer, ms_event *out);
/* Numbers a pending transfer's event, which ms_cuda_point_fulfil will record. */
ms_event ms_cuda_point_reserve(ms_ctx *cx, ms_device_rank *d, ms_cuda_pending *pending);
ms_status ms_cuda_point_fulfil(ms_ctx *cx, ms_device_rank *d, ms_event event,
                               ms_cuda_stream *stream);
/* The record of an event; NULL if the event is known to have happened. */
ms_cuda_point *ms_cuda_point_of(ms_device_rank *d, ms_event event);
/* Makes later work on `stream` wait for `event`, first starting its pending transfer. */
ms_status ms_cuda_after(ms_ctx *cx, ms_device_rank *d, ms_cuda_stream *stream,
                        ms_event event);
/* Makes later work on `stream` wait for all compute enqueued so far: memory is freed and
 * reused in the order of the compute stream. */
ms_status ms_cuda_after_compute(ms_ctx *cx, ms_device_rank *d, ms_cuda_stream *stream);
/* Blocks the host until the stream has done all its work. MS_EIO: another rank failed,
 * CUDA or NCCL found a failure, or the timeout passed. */
ms_status ms_cuda_finish(ms_ctx *cx, ms_device_rank *d, ms_cuda_stream *stream);
ms_status ms_cuda_finish_event(ms_ctx *cx, ms_device_rank *d, ms_cuda_event *event);
ms_event ms_cuda_mark(ms_device_rank *d);
double ms_cuda_now_s(ms_device_rank *d);
ms_status ms_cuda_read_clock(ms_ctx *cx, ms_device_rank *d, double *stamps, long num);
void ms_cuda_forget_stamps(ms_device_rank *d);
ms_status ms_cuda_clock_begin(ms_ctx *cx, ms_device_rank *d);

/* ---- communicators: cuda_backend_comms.c ---- */
ms_status ms_cuda_comms_open(ms_ctx *cx, ms_device_rank *d);
void ms_cuda_comms_abort(ms_device_rank *d);
void ms_cuda_comms_close(ms_device_rank *d);
ms_status ms_cuda_comms_check(ms_ctx *cx, ms_device_rank *d);
/* Index in d->lanes of the lane to (`sends`) or from `peer`; -1: use host memory. */
int ms_cuda_lane_find(const ms_device_rank *d, long peer, bool sends);
const ms_members *ms_cuda_members(const ms_device_rank *d, const ms_transfer *transfer);

/* ---- transfers: cuda_backend_transfers.c ---- */
ms_status ms_cuda_start(ms_ctx *cx, ms_device_rank *d, const ms_transfer *transfer,
                        const ms_event *after, int num_after, ms_event *done);
ms_status ms_cuda_wait(ms_ctx *cx, ms_device_rank *d, ms_event event);
ms_status ms_cuda_resolve_event(ms_ctx *cx, ms_device_rank *d, ms_event event);
ms_cuda_pending *ms_cuda_pending_add(ms_ctx *cx, ms_device_rank *d,
                                     const ms_transfer *transfer);
void ms_cuda_pending_drop(ms_device_rank *d, ms_cuda_pending *pending);

/* Starts a transfer of a rank that executes alone: cuda_backend_modelled.c. */
ms_status ms_cuda_model_start(ms_ctx *cx, ms_device_rank *d, const ms_transfer *transfer,
                              const ms_event *after, int num_after, ms_event *done);
/* ms_backend.take_moves; needs the clock. */
ms_status ms_cuda_take_moves(ms_ctx *cx, ms_device_rank *d, ms_recorder *out);
/* Makes the moves begin anew, timed from now on; does nothing for other transports. */
ms_status ms_cuda_moves_begin(ms_ctx *cx, ms_device_rank *d);
void ms_cuda_moves_close(ms_device_rank *d);
/* Keeps the compute stream busy for the time of a transfer of the host program. */
void ms_cuda_model_host(ms_device_rank *d, double seconds);

/* ---- messages between GPUs: cuda_backend_messages.c ---- */
ms_status ms_cuda_send(ms_ctx *cx, ms_device_rank *d, const ms_transfer *transfer,
                       int lane, ms_event *done);
ms_status ms_cuda_receive(ms_ctx *cx, ms_device_rank *d, const ms_transfer *transfer,
                          int lane, ms_event *done);
ms_status ms_cuda_receive_resolve(ms_ctx *cx, ms_device_rank *d, ms_cuda_pending *wanted);

/* ---- through host memory: cuda_backend_host.c ---- */
ms_status ms_cuda_start_by_host(ms_ctx *cx, ms_device_rank *d,
                                const ms_transfer *transfer, ms_event *done);
ms_status ms_cuda_finish_by_host(ms_ctx *cx, ms_device_rank *d, ms_cuda_pending *p);
void ms_cuda_host_close(ms_device_rank *d);
long ms_cuda_num_sent(const ms_transfer *transfer, int size);

/* ---- kernels and arrays: cuda_backend_kernels.c, cuda_backend_arrays.c ---- */
/* Fails with MS_EIO: no memory for `bytes`; `what` ends the message, as " of tokens". */
ms_status ms_cuda_no_memory(ms_ctx *cx, const ms_device_rank *d, size_t bytes,
                            const char *what);
ms_status ms_cuda_kernels_open(ms_ctx *cx, ms_device_rank *d);
void ms_cuda_kernels_close(ms_device_rank *d);
ms_status ms_cuda_kernel(ms_ctx *cx, ms_device_rank *d, const ms_op_call *op);
/* Puts call->batch on the GPU and describes it in `out`; does nothing if it is NULL. */
ms_status ms_cuda_batch_of(ms_ctx *cx, ms_device_rank *d, const ms_op_call *call,
                           ms_cuda_batch *out);
extern const ms_array_ops ms_cuda_arrays;

#endif
