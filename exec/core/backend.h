/* A backend executes a training step: it provides kernels, memory, transfers between
 * ranks and clocks behind one table of functions. The runner (exec/runner/runner.h) decides what
 * happens in which order. Backends: null has virtual clocks and no values; loop runs all
 * ranks in this process, one thread each; mpi runs one process per rank; cuda one GPU per
 * rank.
 *
 * Ordering. Kernels of a rank run one after the other (the compute stream). A transfer
 * starts when its `after` events have happened and the previous transfer of its stream
 * has ended; compute overlaps it until it waits for it. Backends may be stricter: CPU
 * backends run kernels within the call, and may run a whole transfer in `start`. All
 * ranks of a group start its transfers in the same order; sends never wait for their
 * receiver. */
#ifndef MS_EXEC_CORE_BACKEND_H
#define MS_EXEC_CORE_BACKEND_H

#include "exec/core/kernel_table.h"
#include "exec/core/world.h"
#include "sim/engine/graph.h"

/* A point in a rank's own execution order; event 0 has always happened. */
typedef long ms_event;

typedef enum ms_transfer_kind {
    /* count elements from each member; receive holds size x count, in the order of
     * members */
    MS_TRANSFER_ALL_GATHER,
    /* count elements to each member; send holds size x count */
    MS_TRANSFER_REDUCE_SCATTER,
    /* count elements in all; send and receive may be the same buffer */
    MS_TRANSFER_ALL_REDUCE,
    /* send_counts and receive_counts (size) elements per member, contiguous in the order
     * of members */
    MS_TRANSFER_ALL_TO_ALL,
    /* message to `peer`; `start` may return before it is received, and the buffer may be
     * reused after `wait` */
    MS_TRANSFER_SEND,
    MS_TRANSFER_RECEIVE,
    MS_NUM_TRANSFER_KINDS
} ms_transfer_kind;
/* "all-gather" "reduce-scatter" ..., ended by NULL */
extern const char *const ms_transfer_kind_names[];

typedef struct ms_transfer {
    unsigned char kind;   /* ms_transfer_kind */
    unsigned char scalar; /* ms_scalar of the elements; BYTE is not allowed */
    /* Buffers are in host memory (row counts, sums of a step); false if in the rank's
     * device memory. */
    bool on_host;
    bool maximum;        /* reductions take the maximum instead of the sum */
    unsigned char group; /* ms_traffic_group of a collective */
    /* ms_stream of a collective; sends and receives are independent of all streams */
    unsigned char stream;
    long peer; /* world rank of the other side of a send or receive */
    int tag;   /* tag that a send and its receive share, below MS_MAX_TAG */
    const void *send;
    void *receive;
    long count;
    /* elements per member of an all-to-all; copied by `start` */
    const long *send_counts, *receive_counts;
    /* name in messages, records and traces: "attention.query", "gather parameters" */
    const char *name;
    /* predicted duration, used by virtual clocks and compared with measurements */
    double predicted_s;
    /* prediction for a program's node; NULL if outside a program */
    const ms_block_op *predicted;
} ms_transfer;

/* common MPI libraries allow larger tags; the standard promises only 32767 */
#define MS_MAX_TAG (1 << 23)

/* Text of a transfer for messages: "attention.query (all-gather over tp)", "activations
 * (send to rank 3)". */
const char *ms_transfer_text(ms_arena *arena, const ms_world *world,
                             const ms_transfer *transfer);
/* Records that no memory is left for the transfer; returns MS_EIO. */
ms_status ms_transfer_no_memory(ms_ctx *cx, const ms_world *world,
                                const ms_transfer *transfer);
/* Records that `rank` waited for the transfer in vain; returns MS_EIO. In a group it is
 * not known which rank is missing. */
ms_status ms_transfer_waited(ms_ctx *cx, const ms_world *world, long rank,
                             const ms_transfer *transfer, double waited_s);
/* Whether `first`, which a rank started before `then`, also ends before it: transfers
 * of one stream, and messages with the same peer and tag, end in the order of their
 * starts. */
bool ms_transfer_comes_before(const ms_transfer *first, const ms_transfer *then);
/* Records the first diagnostic of a failed rank, prefixed by "rank 3: ", and returns its
 * status; later diagnostics follow from the first. For backends. */
ms_status ms_rank_failed(ms_ctx *cx, long rank, const ms_ctx *of_rank, ms_status status);
/* Seconds that ranks wait for others if job->timeout_s is 0. */
#define MS_DEFAULT_TIMEOUT_S 60.0
/* Seconds that ranks wait for others once the run is interrupted, since others may have
 * stopped already. */
#define MS_INTERRUPTED_WAIT_S 2.0

/* Function that runs on every rank. `cx` belongs to the rank and lives until `run`
 * returns; failures are recorded there. */
typedef ms_status ms_rank_main(ms_ctx *cx, ms_device_rank *device, long rank,
                               void *state);

typedef struct ms_backend ms_backend;

/* An open backend with the ranks of `world`, computing in `type`. */
typedef struct ms_backend_job {
    const ms_backend *backend;
    const ms_world *world;
    ms_real_type type;
    /* A rank that waits longer than this for others fails with MS_EIO and names the
     * transfer it waited for; 0 for MS_DEFAULT_TIMEOUT_S. */
    double timeout_s;
    /* Non-zero once a signal interrupted the run: then ranks wait at most
     * MS_INTERRUPTED_WAIT_S; NULL if never. */
    volatile const int *interrupted;
    void *state; /* owned by the backend */
} ms_backend_job;

struct ms_backend {
    const char *name; /* "null" "loop" "mpi" "cuda" */
    bool has_values;  /* whether memory and kernels are real */
    bool on_gpu; /* whether its jobs answer ms_cuda_job_... (exec/cuda/cuda_backend.h) */
    const ms_array_ops *arrays; /* NULL if the backend has no values */
    bool computes[MS_NUM_REAL_TYPES];
    /* Scratch bytes that the kernel of a node needs; NULL if kernels need none. */
    size_t (*workspace_bytes)(const ms_program *program, const ms_node *node,
                              ms_real_type type);

    /* Fills job->state. MS_EIO or MS_EINPUT, with the reason, if the backend cannot run
     * here. */
    ms_status (*open)(ms_ctx *cx, ms_backend_job *job);
    /* Runs `main` for each rank that this process carries, and waits for all of them. If
     * one fails, all are aborted within seconds; the first failure is returned and its
     * message ("rank 3: ...") recorded in cx. */
    ms_status (*run)(ms_ctx *cx, ms_backend_job *job, ms_rank_main *main, void *state);
    void (*close)(ms_backend_job *job);
    /* Whether this process carries the rank (mpi: only its own). */
    bool (*carries)(const ms_backend_job *job, long rank);

    /* ---- called by each rank for itself ---- */
    /* NULL for bytes > 0 only if no memory is left, which the caller reports as MS_EIO.
     * Always NULL in a backend without values. */
    void *(*allocate)(ms_device_rank *device, size_t bytes);
    void (*release)(ms_device_rank *device, void *memory, size_t bytes);
    /* Announces the block (embedding, layer or head) whose ops come next in a pass
     * (ms_bill_pass): virtual clocks note when its kernels begin. NULL if the backend
     * does not need it. */
    void (*begin_part)(ms_device_rank *device, const ms_block_ops *part, int pass);
    /* Runs the kernel of one operation on the compute stream. */
    ms_status (*kernel)(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call);
    /* Adds time on the compute stream that no kernel of a program represents: waiting for
     * the host, interference, an optimizer pass. Only virtual clocks implement it; others
     * do nothing. */
    void (*idle)(ms_device_rank *device, double seconds);
    /* An event that happens when all work submitted to the compute stream so far is
     * done. */
    ms_event (*mark)(ms_device_rank *device);
    /* Starts a transfer after the given events; *done happens when it has ended. */
    ms_status (*start)(ms_ctx *cx, ms_device_rank *device, const ms_transfer *transfer,
                       const ms_event *after, int num_after, ms_event *done);
    /* Makes the compute stream wait for the event. */
    ms_status (*wait)(ms_ctx *cx, ms_device_rank *device, ms_event event);
    /* The rank's clock when all work submitted so far is done: real seconds since `run`
     * began, or virtual seconds. A backend whose host code runs ahead of the device
     * returns a stamp instead, which `read_clock` converts to seconds. */
    double (*now_s)(ms_device_rank *device);
    /* Converts stamps to seconds in place, waiting until they have happened. A stamp may
     * be read several times until the next `forget_stamps`. NULL if the backend has no
     * stamps. */
    ms_status (*read_clock)(ms_ctx *cx, ms_device_rank *device, double *stamps, long num);
    void (*forget_stamps)(ms_device_rank *device);
    /* Ends all other ranks soon: their next call of the backend returns MS_EIO. */
    void (*abort)(ms_device_rank *device);
};

extern const ms_backend ms_backend_loop;
extern const ms_backend ms_backend_null;
#ifdef MS_WITH_MPI
extern const ms_backend ms_backend_mpi;
#endif
/* The MPI backend; NULL if built without MPI. */
const ms_backend *ms_mpi_backend(void);

#endif
