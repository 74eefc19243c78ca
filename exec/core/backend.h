/* Room exec/core: what backends, kernels and the runner share about ranks and transfers;
 * none of their implementations.
 *
 * A backend executes a training step: kernels, memory, transfers and clocks behind one
 * table of functions, in the order of the runner (exec/runner/runner.h). Backends: null
 * has virtual clocks and no values; loop runs all ranks in this process, one thread each;
 * mpi has one process per rank; cuda one GPU per rank. Kernels of a rank run one after
 * the other (the compute stream). A transfer starts when its `after` events have happened
 * and the previous transfer of its stream has ended; compute overlaps it until it waits
 * for it. Backends may be stricter: CPU backends run kernels within the call, and may run
 * a whole transfer in `start`. All ranks of a group start its transfers in the same
 * order; sends never wait for their receiver. */
#ifndef MS_EXEC_CORE_BACKEND_H
#define MS_EXEC_CORE_BACKEND_H

#include "exec/core/kernel_table.h"
#include "exec/core/world.h"
#include "sim/engine/graph.h"

/* A point in a rank's own execution order; event 0 has always happened. */
typedef long ms_event;

typedef enum ms_transfer_kind {
    /* count elements from each member; receive (size x count) in their order */
    MS_TRANSFER_ALL_GATHER,
    /* count elements to each member; send holds size x count */
    MS_TRANSFER_REDUCE_SCATTER,
    /* count elements in all; send and receive may be the same buffer */
    MS_TRANSFER_ALL_REDUCE,
    /* send_counts and receive_counts (size) elements per member, contiguous */
    MS_TRANSFER_ALL_TO_ALL,
    MS_TRANSFER_SEND, /* message to `peer`; the buffer may be reused after `wait` */
    MS_TRANSFER_RECEIVE,
    MS_NUM_TRANSFER_KINDS
} ms_transfer_kind;
/* "all-gather" "reduce-scatter" ..., ended by NULL */
extern const char *const ms_transfer_kind_names[];

typedef struct ms_transfer {
    unsigned char kind;   /* ms_transfer_kind */
    unsigned char scalar; /* ms_scalar of the elements; BYTE is not allowed */
    bool on_host; /* buffers are in host memory, otherwise in the rank's device memory */
    bool maximum; /* reductions take the maximum instead of the sum */
    unsigned char group; /* ms_traffic_group of a collective */
    /* ms_stream of a collective; messages are independent of streams */
    unsigned char stream;
    long peer; /* world rank of the other side of a send or receive */
    int tag;   /* tag that a send and its receive share, below MS_MAX_TAG */
    const void *send;
    void *receive;
    long count;
    /* (size) elements per member of an all-to-all; copied by `start` */
    const long *send_counts, *receive_counts;
    const char *name;   /* for messages, records and traces: "attention.query" */
    double predicted_s; /* predicted duration, for virtual clocks and comparisons */
    /* prediction for a program's node; NULL outside programs */
    const ms_block_op *predicted;
} ms_transfer;

/* common MPI libraries allow larger tags; the standard promises only 32767 */
#define MS_MAX_TAG (1 << 23)

/* "attention.query (all-gather over tp)", "activations (send to rank 3)". */
const char *ms_transfer_text(ms_arena *arena, const ms_world *world,
                             const ms_transfer *transfer);
/* Records that no memory is left for the transfer; returns MS_EIO. */
ms_status ms_transfer_no_memory(ms_ctx *cx, const ms_world *world,
                                const ms_transfer *transfer);
/* Records that `rank` waited for a transfer in vain; returns MS_EIO. */
ms_status ms_transfer_waited(ms_ctx *cx, const ms_world *world, long rank,
                             const ms_transfer *transfer, double waited_s);
/* Whether `first`, started before `then`, also ends before it: transfers of one stream,
 * and messages with one peer and tag, keep their order. */
bool ms_transfer_comes_before(const ms_transfer *first, const ms_transfer *then);
/* Records a failed rank's first diagnostic after "rank 3: "; returns its status. */
ms_status ms_rank_failed(ms_ctx *cx, long rank, const ms_ctx *of_rank, ms_status status);
/* Seconds that ranks wait for others if job->timeout_s is 0. */
#define MS_DEFAULT_TIMEOUT_S 60.0
/* Such seconds once the run is interrupted, since others may have stopped already. */
#define MS_INTERRUPTED_WAIT_S 2.0

/* Runs on every rank; `cx` belongs to the rank, receives failures and ends with `run`. */
typedef ms_status ms_rank_main(ms_ctx *cx, ms_device_rank *device, long rank,
                               void *state);

typedef struct ms_backend ms_backend;

/* An open backend with the ranks of `world`, computing in `type`. */
typedef struct ms_backend_job {
    const ms_backend *backend;
    const ms_world *world;
    ms_real_type type;
    /* Limit of a rank's waiting for others, after which it fails with MS_EIO and names
     * the transfer; 0 for MS_DEFAULT_TIMEOUT_S. */
    double timeout_s;
    /* Non-zero once a signal interrupted the run; NULL if never. */
    volatile const int *interrupted;
    void *state; /* owned by the backend */
} ms_backend_job;

struct ms_backend {
    const char *name; /* "null" "loop" "mpi" "cuda" */
    bool has_values;  /* whether memory and kernels are real */
    bool in_process;  /* whether all ranks are threads of this process */
    bool on_gpu; /* whether its jobs answer ms_cuda_job_... (exec/cuda/cuda_backend.h) */
    const ms_array_ops *arrays; /* NULL if the backend has no values */
    bool computes[MS_NUM_REAL_TYPES];
    /* Scratch bytes of a node's kernel; NULL if kernels need none. */
    size_t (*workspace_bytes)(const ms_program *program, const ms_node *node,
                              ms_real_type type);

    /* Fills job->state. MS_EIO or MS_EINPUT, with the reason, if it cannot run here. */
    ms_status (*open)(ms_ctx *cx, ms_backend_job *job);
    /* Runs `main` for the ranks that this process carries. If one fails, all are aborted
     * within seconds, and the first failure is returned and recorded in cx. */
    ms_status (*run)(ms_ctx *cx, ms_backend_job *job, ms_rank_main *main, void *state);
    void (*close)(ms_backend_job *job);
    /* Whether this process carries the rank (mpi: only its own). */
    bool (*carries)(const ms_backend_job *job, long rank);

    /* ---- called by each rank for itself ---- */
    /* NULL for bytes > 0 without values or memory, which the caller reports (MS_EIO). */
    void *(*allocate)(ms_device_rank *device, size_t bytes);
    void (*release)(ms_device_rank *device, void *memory, size_t bytes);
    /* Announces the block (embedding, layer or head) whose ops come next in a pass
     * (ms_bill_pass), for virtual clocks. May be NULL. */
    void (*begin_part)(ms_device_rank *device, const ms_block_ops *part, int pass);
    /* Runs the kernel of one operation on the compute stream. */
    ms_status (*kernel)(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call);
    /* Adds time of the compute stream outside kernels, such as waiting for the host, to a
     * virtual clock; nothing in other backends. */
    void (*idle)(ms_device_rank *device, double seconds);
    /* An event that happens when the compute stream has done all work so far. */
    ms_event (*mark)(ms_device_rank *device);
    /* Starts a transfer after the given events; *done happens when it has ended. */
    ms_status (*start)(ms_ctx *cx, ms_device_rank *device, const ms_transfer *transfer,
                       const ms_event *after, int num_after, ms_event *done);
    /* Makes the compute stream wait for the event. */
    ms_status (*wait)(ms_ctx *cx, ms_device_rank *device, ms_event event);
    /* The rank's clock when all work so far is done: seconds since `run` began, real or
     * virtual, or a stamp that `read_clock` converts, if host code runs ahead. */
    double (*now_s)(ms_device_rank *device);
    /* Waits for stamps and converts them to seconds in place; they stay readable until
     * `forget_stamps`. NULL if the backend has no stamps. */
    ms_status (*read_clock)(ms_ctx *cx, ms_device_rank *device, double *stamps, long num);
    void (*forget_stamps)(ms_device_rank *device);
    /* Ends all other ranks soon: their next call returns MS_EIO. */
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
