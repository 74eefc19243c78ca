/* What the files of the CUDA backend share. */
#ifndef MS_EXEC_CUDA_BACKEND_PRIV_H
#define MS_EXEC_CUDA_BACKEND_PRIV_H

#include "exec/cuda_backend.h"
#include "exec/cuda_channels.h"

#include <pthread.h>

typedef struct ms_cuda_job ms_cuda_job;

/* What only the program can bring to its end: what goes through host memory, and a
 * receive of which the sender has not said yet where it comes among its messages. */
typedef struct ms_cuda_pending {
    ms_event event;
    ms_transfer transfer;
    /* through host memory */
    bool by_host;
    ms_event inner_event;
    struct ms_cuda_staging *sent, *received; /* NULL: none */
    /* a receive */
    int channel;
    ms_event before; /* it starts after */
    struct ms_cuda_pending *next;
} ms_cuda_pending;

/* Host memory on its way. */
typedef struct ms_cuda_staging {
    void *memory;
    size_t bytes;
    struct ms_cuda_staging *next;
} ms_cuda_staging;

/* A point in the rank's order. */
typedef struct ms_cuda_point {
    ms_cuda_event *event; /* NULL: it has happened, or is pending */
    ms_cuda_stream *stream;
    ms_cuda_pending *pending;
    void *release; /* memory that is free when compute has waited for it; NULL: none */
    bool has_transfer;
    ms_transfer transfer;
} ms_cuda_point;

/* Points from the oldest that may not have happened yet: number n is at n modulo the room. */
typedef struct ms_cuda_points {
    ms_cuda_point *ring;
    long room; /* a power of two */
    ms_event first, next;
    ms_event last_mark;
    bool compute_moved; /* since the last mark */
} ms_cuda_points;

/* Stamps of the clock since they were forgotten last; stamp i + 1 is at i. */
typedef struct ms_cuda_stamp {
    ms_cuda_event *event; /* NULL: seconds are known */
    double seconds;
} ms_cuda_stamp;

typedef struct ms_cuda_clock {
    ms_cuda_event *anchor; /* has happened, */
    double anchor_s;       /* then */
    ms_cuda_stamp *stamps;
    long num, room, first_open; /* before first_open all are known */
    bool compute_moved;         /* since the last stamp */
} ms_cuda_clock;

/* A communicator of a group, and the stream that used it last: NCCL lets those of one
 * communicator run one after the other only. */
typedef struct ms_cuda_group {
    ms_cuda_comm *comm;
    ms_cuda_stream *last_stream;
} ms_cuda_group;

/* Messages from one rank to another, in the order of the sender's starts. */
typedef struct ms_cuda_unasked {
    int tag;
    long count;
    ms_scalar scalar;
    void *memory;
    struct ms_cuda_unasked *next;
} ms_cuda_unasked;

/* What is sent, until it is received. */
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
    ms_cuda_unasked *unasked; /* received before the program asked for it */
} ms_cuda_lane;

/* A micro-batch that was copied to the device. */
#define MS_CUDA_BATCHES 16
typedef struct ms_cuda_kept_batch {
    unsigned long number; /* 0: none */
    unsigned long used_at;
    long count, room; /* of tokens */
    int *tokens, *targets;
    int *staging;        /* both, in host memory */
    ms_cuda_event *sent; /* NULL: never used */
} ms_cuda_kept_batch;

#define MS_CUDA_MAX_GROUPS 32

struct ms_device_rank {
    ms_cuda_job *job;
    long rank;
    ms_ctx *cx;            /* of the run */
    ms_device_rank *inner; /* NULL: none */
    const ms_cuda_driver *driver;
    const ms_cuda_kernels *kernels;
    ms_precision precision;
    ms_arena *arena; /* of the rank: as long as the job is open */
    bool is_open, failed;
    ms_status status; /* of what could not say it */
    int ordinal;
    ms_cuda_device *gpu;
    ms_cuda_stream *compute, *stream[MS_NUM_STREAMS];
    ms_cuda_event **idle_events;
    int num_idle_events, room_idle_events;
    ms_cuda_memory *memory;
    ms_cuda_points points;
    ms_cuda_clock clock;
    ms_cuda_pending *first_pending, **end_pending, *idle_pending;
    ms_cuda_staging *idle_staging;
    /* communicators */
    ms_cuda_comm *world;
    /* in a call that waits for other ranks; under the job's lock */
    ms_cuda_comm *waits_on;
    int num_groups;
    ms_cuda_group groups[MS_CUDA_MAX_GROUPS];
    int num_lanes;
    ms_cuda_lane *lanes;
    ms_cuda_copy *copies, *idle_copies;
    /* arrays and batches */
    double *sums;      /* (MS_MAX_SUMS) on the device */
    void *sum_scratch; /* on the device */
    char *staging[2];  /* of reads and writes, in host memory */
    size_t staging_bytes[2];
    bool lacks_fp8; /* some products that were to be in FP8 were made in bf16 */
    ms_cuda_event *staged[2];
    ms_cuda_kept_batch batches[MS_CUDA_BATCHES];
    unsigned long num_uses;
    const long *positions; /* of which `device_positions` is the copy */
    int *device_positions;
};

struct ms_cuda_job {
    const ms_cuda_backend *backend;
    const ms_cuda_driver *driver;
    ms_backend_job *outer;
    const ms_backend *inner; /* NULL: none */
    ms_backend_job inner_job;
    double timeout_s;
    int num_devices;
    bool shares_gpus; /* among ranks, by NCCL */
    ms_arena *arena;
    ms_cuda_channels channels;
    ms_device_rank *ranks; /* (num_ranks) */
    bool failed;
    ms_cuda_used *used;
    bool *was_used;       /* (num_ranks) */
    pthread_mutex_t lock; /* of these: */
    bool opening_failed;
    ms_rank_main *main;
    void *main_state;
};

/* ---- order: cuda_backend_order.c ---- */
ms_status ms_cuda_order_open(ms_ctx *cx, ms_device_rank *d);
void ms_cuda_order_close(ms_device_rank *d);
/* MS_EIO: something failed that could not say so. */
ms_status ms_cuda_check_rank(ms_ctx *cx, ms_device_rank *d);
/* For calls without a status. */
void ms_cuda_keep_status(ms_device_rank *d, ms_status status);
ms_status ms_cuda_take_event(ms_ctx *cx, ms_device_rank *d, ms_cuda_event **out);
void ms_cuda_give_event(ms_device_rank *d, ms_cuda_event *event);
/* Compute was given something. */
void ms_cuda_moved(ms_device_rank *d);
/* After everything that the stream was given so far; of a transfer, which is copied, or
 * (NULL) not. */
ms_status ms_cuda_point_make(ms_ctx *cx, ms_device_rank *d, ms_cuda_stream *stream,
                             const ms_transfer *transfer, ms_event *out);
/* A point of something pending, whose event comes later. */
ms_event ms_cuda_point_reserve(ms_ctx *cx, ms_device_rank *d, ms_cuda_pending *pending);
/* The pending one happens after everything that the stream was given so far. */
ms_status ms_cuda_point_fulfil(ms_ctx *cx, ms_device_rank *d, ms_event event,
                               ms_cuda_stream *stream);
/* NULL: it has happened. */
ms_cuda_point *ms_cuda_point_of(ms_device_rank *d, ms_event event);
/* What the stream is given next starts after the point; brings a pending one about. */
ms_status ms_cuda_after(ms_ctx *cx, ms_device_rank *d, ms_cuda_stream *stream,
                        ms_event event);
/* ... after all that compute was given so far: memory is handed on in its order. */
ms_status ms_cuda_after_compute(ms_ctx *cx, ms_device_rank *d, ms_cuda_stream *stream);
/* The program waits until the stream has done all it was given: MS_EIO when another rank
 * fails, the library finds a failure, or after the timeout. */
ms_status ms_cuda_finish(ms_ctx *cx, ms_device_rank *d, ms_cuda_stream *stream);
ms_status ms_cuda_finish_event(ms_ctx *cx, ms_device_rank *d, ms_cuda_event *event);
ms_event ms_cuda_mark(ms_device_rank *d);
double ms_cuda_now_s(ms_device_rank *d);
ms_status ms_cuda_read_clock(ms_ctx *cx, ms_device_rank *d, double *stamps, long num);
void ms_cuda_forget_stamps(ms_device_rank *d);
/* The clock begins at what the inner backend says now. */
ms_status ms_cuda_clock_begin(ms_ctx *cx, ms_device_rank *d);

/* ---- communicators: cuda_backend_comms.c ---- */
ms_status ms_cuda_comms_open(ms_ctx *cx, ms_device_rank *d);
void ms_cuda_comms_abort(ms_device_rank *d);
void ms_cuda_comms_close(ms_device_rank *d);
ms_status ms_cuda_comms_check(ms_ctx *cx, ms_device_rank *d);
/* Messages to or from the peer; -1: they go through host memory. */
int ms_cuda_lane_find(const ms_device_rank *d, long peer, bool sends);
const ms_members *ms_cuda_members(const ms_device_rank *d, const ms_transfer *transfer);

/* ---- transfers: cuda_backend_transfers.c ---- */
ms_status ms_cuda_start(ms_ctx *cx, ms_device_rank *d, const ms_transfer *transfer,
                        const ms_event *after, int num_after, ms_event *done);
ms_status ms_cuda_wait(ms_ctx *cx, ms_device_rank *d, ms_event event);
/* Makes the event of a pending point, or lets it happen. */
ms_status ms_cuda_settle(ms_ctx *cx, ms_device_rank *d, ms_event event);
ms_cuda_pending *ms_cuda_pending_add(ms_ctx *cx, ms_device_rank *d,
                                     const ms_transfer *transfer);
void ms_cuda_pending_drop(ms_device_rank *d, ms_cuda_pending *pending);

/* ---- messages between GPUs: cuda_backend_messages.c ---- */
ms_status ms_cuda_send(ms_ctx *cx, ms_device_rank *d, const ms_transfer *transfer,
                       int lane, ms_event *done);
ms_status ms_cuda_receive(ms_ctx *cx, ms_device_rank *d, const ms_transfer *transfer,
                          int lane, ms_event *done);
ms_status ms_cuda_receive_settle(ms_ctx *cx, ms_device_rank *d, ms_cuda_pending *wanted);

/* ---- through host memory: cuda_backend_host.c ---- */
ms_status ms_cuda_start_by_host(ms_ctx *cx, ms_device_rank *d,
                                const ms_transfer *transfer, ms_event *done);
ms_status ms_cuda_finish_by_host(ms_ctx *cx, ms_device_rank *d, ms_cuda_pending *p);
void ms_cuda_host_close(ms_device_rank *d);
/* Elements that a rank gives and gets. */
long ms_cuda_num_sent(const ms_transfer *transfer, int size);

/* ---- kernels and arrays: cuda_backend_kernels.c, cuda_backend_arrays.c ---- */
ms_status ms_cuda_kernels_open(ms_ctx *cx, ms_device_rank *d);
void ms_cuda_kernels_close(ms_device_rank *d);
ms_status ms_cuda_kernel(ms_ctx *cx, ms_device_rank *d, const ms_op_call *op);
/* The micro-batch of a call, on the device; `out` is filled where call->batch is. */
ms_status ms_cuda_batch_of(ms_ctx *cx, ms_device_rank *d, const ms_op_call *call,
                           ms_cuda_batch *out);
extern const ms_array_ops ms_cuda_arrays;

#endif
