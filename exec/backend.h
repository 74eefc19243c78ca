/* What carries out a step: kernels, memory, transfers between ranks and clocks, behind
 * one table of functions. The runner (exec/runner.h) decides what happens in which order;
 * a backend only does it. null: virtual clocks, no values. loop: all ranks in this
 * process, a thread each. mpi: a process a rank. cuda: a GPU a rank.
 *
 * Order. Kernels of a rank run one after the other (the compute stream). A transfer
 * starts when its `after` events have happened and the transfer before it on its stream
 * has ended; compute goes on beside it until it waits. Backends may be stricter: CPU
 * backends run kernels in the call, and may run a whole transfer in `start`. All ranks of
 * a group start its transfers in the same order; sends never wait for their receiver. */
#ifndef MS_EXEC_BACKEND_H
#define MS_EXEC_BACKEND_H

#include "exec/kernel_table.h"
#include "exec/world.h"
#include "sim/graph.h"

/* A point in a rank's own order; 0 has always happened. */
typedef long ms_event;

typedef enum ms_transfer_kind {
    /* count: of each member; receive holds size x count, in the order of members */
    MS_TRANSFER_ALL_GATHER,
    MS_TRANSFER_REDUCE_SCATTER, /* count: of each member; send holds size x count */
    MS_TRANSFER_ALL_REDUCE,     /* count: of all; send and receive may be the same */
    /* send_counts, receive_counts (size), parts one after the other in the order of members */
    MS_TRANSFER_ALL_TO_ALL,
    /* to `peer`; may return before it was received, the buffer can be used again after `wait` */
    MS_TRANSFER_SEND,
    MS_TRANSFER_RECEIVE,
    MS_NUM_TRANSFER_KINDS
} ms_transfer_kind;
/* "all-gather" "reduce-scatter" ..., NULL */
extern const char *const ms_transfer_kind_names[];

typedef struct ms_transfer {
    unsigned char kind;   /* ms_transfer_kind */
    unsigned char scalar; /* ms_scalar; no bytes */
    /* buffers are the program's own memory: counts of rows, sums of a step; otherwise
     * the rank's */
    bool on_host;
    bool maximum;         /* reductions: max instead of sum */
    unsigned char group;  /* ms_traffic_group of collectives */
    unsigned char stream; /* ms_stream; sends and receives run beside all streams */
    long peer;            /* rank of the world */
    int tag;              /* of sends: what the receiver asks for; below MS_MAX_TAG */
    const void *send;
    void *receive;
    long count;
    const long *send_counts, *receive_counts; /* copied by `start` */
    /* for messages, records and traces: "attention.query", "gather parameters" */
    const char *name;
    /* for virtual clocks, and to be compared with what was measured */
    double predicted_s;
    const ms_part_op *predicted; /* of a program's node; NULL: not of a program */
} ms_transfer;

#define MS_MAX_TAG (1 << 23) /* libraries of MPI have as many, though it promises 32767 */

/* "attention.query (all-gather over tp)", "activations (send to rank 3)": for messages. */
const char *ms_transfer_text(ms_arena *arena, const ms_world *world,
                             const ms_transfer *transfer);
/* MS_EIO: no memory is left for it. */
ms_status ms_transfer_no_memory(ms_ctx *cx, const ms_world *world,
                                const ms_transfer *transfer);
/* MS_EIO: `rank` waited in vain, and does not know for whom of a group. */
ms_status ms_transfer_waited(ms_ctx *cx, const ms_world *world, long rank,
                             const ms_transfer *transfer, double waited_s);
/* Whether `first`, which a rank started before `then`, ends before it: transfers of one
 * stream, and what comes from the same rank with the same tag, end in the order of
 * their starts. */
bool ms_transfer_comes_before(const ms_transfer *first, const ms_transfer *then);
/* Records what a rank that failed recorded first (what came later is of its way out),
 * with "rank 3: " before it, and returns its status. For backends. */
ms_status ms_rank_failed(ms_ctx *cx, long rank, const ms_ctx *of_rank, ms_status status);
/* What ranks wait for others when job->timeout_s is 0. */
#define MS_DEFAULT_TIMEOUT_S 60.0
/* ... and when the run is to stop: others may have stopped already. */
#define MS_INTERRUPTED_WAIT_S 2.0

/* What runs on every rank. `cx` is the rank's own, and ends with `run`: failures are
 * recorded there. */
typedef ms_status ms_rank_main(ms_ctx *cx, ms_device_rank *device, long rank,
                               void *state);

typedef struct ms_backend ms_backend;

/* An open backend: `world` ranks of type `type`. */
typedef struct ms_backend_job {
    const ms_backend *backend;
    const ms_world *world;
    ms_real_type type;
    /* a rank that waits longer for others gives up: MS_EIO naming what it waited for; 0:
     * the default */
    double timeout_s;
    /* set by a signal: who waits then, waits no more than MS_INTERRUPTED_WAIT_S; NULL: never */
    volatile const int *interrupted;
    void *state; /* the backend's */
} ms_backend_job;

struct ms_backend {
    const char *name; /* "null" "loop" "mpi" "cuda" */
    bool has_values;  /* memory and kernels are real */
    bool on_gpu;      /* its jobs answer ms_cuda_job_... (exec/cuda_backend.h) */
    const ms_array_ops *arrays; /* NULL without values */
    bool computes[MS_NUM_REAL_TYPES];
    /* That a kernel needs for a node; NULL: none. */
    size_t (*workspace_bytes)(const ms_program *program, const ms_node *node,
                              ms_real_type type);

    /* Fills job->state. MS_EIO, MS_EINPUT: not possible here, with the reason. */
    ms_status (*open)(ms_ctx *cx, ms_backend_job *job);
    /* Runs `main` for each rank that this process carries, and waits for all of them.
     * When one fails all are aborted, within seconds; the result is the first failure,
     * with its message ("rank 3: ..."), recorded in cx. */
    ms_status (*run)(ms_ctx *cx, ms_backend_job *job, ms_rank_main *main, void *state);
    void (*close)(ms_backend_job *job);
    /* Whether this process carries the rank (mpi: its own only). */
    bool (*carries)(const ms_backend_job *job, long rank);

    /* ---- of one rank, called by it ---- */
    /* Never NULL for bytes > 0 unless the rank has no memory left: MS_EIO by the caller.
     * Without values: NULL. */
    void *(*allocate)(ms_device_rank *device, size_t bytes);
    void (*release)(ms_device_rank *device, void *memory, size_t bytes);
    /* The part whose ops come next in a pass (ms_bill_pass): virtual clocks note when its
     * kernels begin. NULL: not asked for. */
    void (*begin_part)(ms_device_rank *device, const ms_part_ops *part, int pass);
    ms_status (*kernel)(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call);
    /* Time on the compute stream that no kernel of a program stands for: waiting for the
     * host, interference, an optimizer pass. Virtual clocks only; others do nothing. */
    void (*idle)(ms_device_rank *device, double seconds);
    /* Everything that compute was given so far. */
    ms_event (*mark)(ms_device_rank *device);
    ms_status (*start)(ms_ctx *cx, ms_device_rank *device, const ms_transfer *transfer,
                       const ms_event *after, int num_after, ms_event *done);
    /* Compute waits for the event. */
    ms_status (*wait)(ms_ctx *cx, ms_device_rank *device, ms_event event);
    /* The rank's clock when all it was given so far is done: real seconds since `run`
     * began, or virtual ones. Where the program runs ahead of the rank's compute, a
     * stamp: a number that `read_clock` makes such seconds of. */
    double (*now_s)(ms_device_rank *device);
    /* In place; waits until they have happened. A stamp may be read more than once until
     * the next `forget_stamps`. NULL: there are no stamps. */
    ms_status (*read_clock)(ms_ctx *cx, ms_device_rank *device, double *stamps, long num);
    void (*forget_stamps)(ms_device_rank *device);
    /* All other ranks end soon: they get MS_EIO from what they call next. */
    void (*abort)(ms_device_rank *device);
};

extern const ms_backend ms_backend_loop;
extern const ms_backend ms_backend_null;
#ifdef MS_WITH_MPI
extern const ms_backend ms_backend_mpi;
#endif
/* NULL: built without MPI. */
const ms_backend *ms_mpi_backend(void);

#endif
