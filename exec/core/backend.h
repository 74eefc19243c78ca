/* Folder exec/core: what backends, kernels and the runner share about ranks and
 * transfers; none of their implementations.
 *
 * A backend executes a training step: kernels, memory, transfers and clocks behind one
 * table of functions, in the order of the runner (exec/runner/runner.h). Backends: null
 * has virtual clocks and no values; loop runs all ranks in this process, one thread each;
 * mpi has one process per rank; cuda one GPU per rank. Kernels of a rank run one after
 * the other (the compute stream). A transfer starts when its `after` events have happened
 * and the previous transfer of its stream has ended; kernels overlap it until `wait` is
 * called for its event. Backends may be stricter: CPU backends run kernels within the
 * call, and may run a whole transfer in `start`. All ranks of a group start its transfers
 * in the same order; sends never wait for their receiver. */
#ifndef MS_EXEC_CORE_BACKEND_H
#define MS_EXEC_CORE_BACKEND_H

#include "exec/core/kernel_table.h"
#include "exec/core/record.h"
#include "exec/core/world.h"

/* An event that later work of the rank can wait for; event 0 has always happened. */
typedef long ms_event;

typedef enum ms_transfer_kind {
    /* each of `size` members sends `count` elements; `receive` holds size x count */
    MS_TRANSFER_ALL_GATHER,
    /* each of `size` members receives `count` elements; `send` holds size x count */
    MS_TRANSFER_REDUCE_SCATTER,
    /* `count` elements are reduced; `send` and `receive` may be the same buffer */
    MS_TRANSFER_ALL_REDUCE,
    /* send_counts[i] elements go to member i, receive_counts[i] come from member i */
    MS_TRANSFER_ALL_TO_ALL,
    MS_TRANSFER_SEND, /* message to `peer`; the buffer may be reused after `wait` */
    MS_TRANSFER_RECEIVE,
    MS_NUM_TRANSFER_KINDS
} ms_transfer_kind;
/* "all-gather" "reduce-scatter" ..., ended by NULL */
extern const char *const ms_transfer_kind_names[];

typedef struct ms_transfer {
    unsigned char kind;   /* an ms_transfer_kind */
    unsigned char scalar; /* ms_scalar of the elements; reductions have no BYTE */
    bool on_host; /* buffers are in host memory, otherwise in the rank's device memory */
    bool maximum; /* reductions take the maximum instead of the sum */
    unsigned char group; /* ms_traffic_group of a collective */
    /* ms_stream of a collective; sends and receives belong to no stream */
    unsigned char stream;
    long peer; /* world rank of the other side of a send or receive */
    int tag;   /* tag shared by a send and its receive, below MS_MAX_TAG */
    const void *send;
    void *receive;
    long count;
    /* [member] numbers of elements that an all-to-all sends and receives */
    const long *send_counts, *receive_counts;
    const char *name;   /* in diagnostics and traces: "attention.query" */
    double predicted_s; /* predicted duration, for virtual clocks and comparisons */
    /* predicted costs of the layer program's node; NULL if the transfer has none */
    const ms_block_op *predicted;
} ms_transfer;

/* Message tags are below this bound, which common MPI libraries allow. */
#define MS_MAX_TAG (1 << 23)

/* Describes a transfer in diagnostics: "activations (send to rank 3, tag 5)". */
const char *ms_transfer_text(ms_arena *arena, const ms_world *world,
                             const ms_transfer *transfer);
/* Reports in `cx` that no memory is left for the transfer; returns MS_EIO. */
ms_status ms_transfer_no_memory(ms_ctx *cx, const ms_world *world,
                                const ms_transfer *transfer);
/* Reports in `cx` that `rank` waited for the transfer in vain; returns MS_EIO. */
ms_status ms_transfer_waited(ms_ctx *cx, const ms_world *world, long rank,
                             const ms_transfer *transfer, double waited_s);
/* Whether transfer `first`, started before `then`, also ends before it: collectives of
 * one stream, and messages with one peer and tag, keep their order. */
bool ms_transfer_comes_before(const ms_transfer *first, const ms_transfer *then);
/* The slice of a transfer that takes its stream from begin_s to end_s. */
ms_recorded ms_transfer_moves(const ms_transfer *transfer, double begin_s, double end_s);
/* Reports a failed rank's first diagnostic in cx as "rank 3: ..."; returns its status. */
ms_status ms_rank_failed(ms_ctx *cx, long rank, const ms_ctx *of_rank, ms_status status);
/* Seconds that a rank waits for other ranks if job->timeout_s is 0. */
#define MS_DEFAULT_TIMEOUT_S 60.0
/* Seconds that a rank waits for others, which may have stopped, once a signal came. */
#define MS_INTERRUPTED_WAIT_S 2.0

/* Function that every rank executes; `cx` is the rank's own and ends with the run. */
typedef ms_status ms_rank_main(ms_ctx *cx, ms_device_rank *device, long rank,
                               void *state);

typedef struct ms_backend ms_backend;

/* Owner of the kernels that run attention on a GPU. Where the library cannot, the
 * program's own do. */
typedef enum ms_run_attention {
    MS_RUN_ATTENTION_OWN,
    MS_RUN_ATTENTION_CUDNN,
    MS_RUN_ATTENTION_CUDNN_DETERMINISTIC /* gradients are equal in every run */
} ms_run_attention;

/* An open backend with the ranks of `world`, computing in `type`. */
typedef struct ms_backend_job {
    const ms_backend *backend;
    const ms_world *world;
    ms_real_type type;
    /* Seconds that a rank may wait for others; then it fails with MS_EIO and names the
     * transfer. 0: MS_DEFAULT_TIMEOUT_S. */
    double timeout_s;
    /* Non-zero once a signal interrupted the run; NULL if never. */
    volatile const int *interrupted;
    long replayed_rank; /* the only rank that a modelled backend carries */
    /* Multiprocessors that a modelled transfer on a GPU holds (0: none), and most of them
     * that a collective by NCCL may hold (0: as many as fit). */
    int held_sms;
    /* choices of GEMM algorithms for backend cuda (exec/cuda/cuda_gemm_choices.h); NULL:
     * the library's own */
    struct ms_cuda_gemm_choices *gemm_choices;
    ms_run_attention attention;
    void *state; /* the backend's own data */
} ms_backend_job;

struct ms_backend {
    const char *name;           /* "null" "loop" "mpi" "cuda" */
    bool has_values;            /* memory and kernels are real, not only clocks */
    bool in_process;            /* all ranks are threads of this process */
    bool on_gpu;                /* kernels run on a GPU; ms_cuda_job_... take its jobs */
    const ms_array_ops *arrays; /* NULL if the backend only simulates */
    bool computes[MS_NUM_REAL_TYPES];
    /* Scratch bytes of a node's kernel; NULL if no kernel needs scratch memory. */
    size_t (*workspace_bytes)(const ms_program *program, const ms_node *node,
                              ms_real_type type);

    /* Fills job->state. MS_EIO or MS_EINPUT, with the reason, if it cannot run here. */
    ms_status (*open)(ms_ctx *cx, ms_backend_job *job);
    /* Runs `main` for the ranks of this process. If one fails, all ranks are aborted
     * within seconds, and the first failure is returned and reported in cx. */
    ms_status (*run)(ms_ctx *cx, ms_backend_job *job, ms_rank_main *main, void *state);
    void (*close)(ms_backend_job *job);
    /* Whether this process runs the rank (an mpi process runs only its own). */
    bool (*carries)(const ms_backend_job *job, long rank);

    /* ---- called by each rank for itself ---- */
    /* NULL for 0 bytes, if no memory is left, or if the backend only simulates. */
    void *(*allocate)(ms_device_rank *device, size_t bytes);
    void (*release)(ms_device_rank *device, void *memory, size_t bytes);
    /* Announces the block (embedding, layer or head) whose ops come next, and the pass
     * (ms_bill_pass), for virtual clocks. May be NULL. */
    void (*begin_block)(ms_device_rank *device, const ms_block_ops *block, int pass);
    /* Runs the kernel of one operation on the compute stream. */
    ms_status (*kernel)(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call);
    /* Adds time in which the compute stream is idle, such as waiting for the host, to a
     * virtual clock; does nothing in other backends. */
    void (*idle)(ms_device_rank *device, double seconds);
    /* Returns an event that happens when the compute stream has done all work so far. */
    ms_event (*mark)(ms_device_rank *device);
    /* Starts a transfer after the `after` events; *done is the event of its end. */
    ms_status (*start)(ms_ctx *cx, ms_device_rank *device, const ms_transfer *transfer,
                       const ms_event *after, int num_after, ms_event *done);
    /* Makes the compute stream wait for the event. */
    ms_status (*wait)(ms_ctx *cx, ms_device_rank *device, ms_event event);
    /* Time at which all work so far ends, in seconds since `run` began (real or virtual).
     * If the host runs ahead of a GPU: instead a stamp for `read_clock`. */
    double (*now_s)(ms_device_rank *device);
    /* Waits for `num` stamps of `now_s` and replaces each by its seconds; `forget_stamps`
     * makes stamps invalid. NULL if `now_s` returns seconds. */
    ms_status (*read_clock)(ms_ctx *cx, ms_device_rank *device, double *stamps, long num);
    void (*forget_stamps)(ms_device_rank *device);
    /* Waits for the transfers since the last call and adds to `out` the slices
     * (ms_recorded.moves) in which they took their streams. NULL: the backend does not
     * know them; real transfers move when other ranks do. */
    ms_status (*take_moves)(ms_ctx *cx, ms_device_rank *device, ms_recorder *out);
    /* Makes all other ranks end soon: their next call of the backend returns MS_EIO. */
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
