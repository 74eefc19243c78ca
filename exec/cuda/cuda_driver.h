/* The functions of a GPU and its libraries that the CUDA backend uses: memory, streams,
 * events, copies, GEMMs, attention, communicators. exec/cuda/vendor_*.c implement them by
 * the CUDA run time, cuBLASLt, cuDNN and NCCL; tests have an emulated device that defers
 * the work of every stream until something waits for it, and runs it in any order that
 * streams and events allow. The host never reads device pointers.
 *
 * Calls do not wait unless their comment says so. Errors: MS_EIO with a message that
 * names the call and the library's error text. */
#ifndef MS_EXEC_CUDA_CUDA_DRIVER_H
#define MS_EXEC_CUDA_CUDA_DRIVER_H

#include "base/diag.h"
#include "exec/core/scalar.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct ms_cuda_device ms_cuda_device; /* a rank's handle of its GPU */
typedef struct ms_cuda_stream ms_cuda_stream;
typedef struct ms_cuda_event ms_cuda_event; /* a point in a stream's work */
typedef struct ms_cuda_comm ms_cuda_comm;
/* exec/cuda/cuda_gemm_choices.h */
typedef struct ms_cuda_gemm_choices ms_cuda_gemm_choices;

#define MS_CUDA_TEXT 128

/* Properties of a device, for records and profiles. */
typedef struct ms_cuda_facts {
    char name[MS_CUDA_TEXT]; /* device name, such as "NVIDIA H200" */
    int major, minor;        /* compute capability major.minor */
    int num_sms;
    int num_queues;      /* hardware queues of streams (CUDA_DEVICE_MAX_CONNECTIONS) */
    double memory_bytes; /* total device memory */
    double shared_bytes; /* shared memory available to a thread block */
    double l2_bytes;
    /* clock rates and memory bus width; 0 if unknown */
    double clock_hz, memory_clock_hz, bus_bits;
    /* version numbers in each library's own encoding; 0 if not loaded */
    int driver_version, runtime_version, blas_version, nccl_version, cudnn_version;
} ms_cuda_facts;

/* A size of a GEMM. */
typedef enum ms_cuda_gemm_size {
    MS_CUDA_GEMM_NONE,
    MS_CUDA_GEMM_M,
    MS_CUDA_GEMM_N,
    MS_CUDA_GEMM_K
} ms_cuda_gemm_size;

/* c (m, n) = a (m, k) b (k, n) [+ c], all row-major. transpose_*: the matrix is stored
 * transposed; ld_*: elements between its rows as stored. num_batch products (0 means 1)
 * begin stride_* elements apart. Sums are fp32, or fp64 for fp64.
 *
 * FP8 products (compute capability 8.9 and later) need both operands contiguous along k
 * (transpose_b, not transpose_a), num_batch at most 1, k and n multiples of 16, addresses
 * and leading dimensions of 16 bytes, and at most one operand in e5m2. Source: cuBLAS
 * documentation 13.0, cublasLtMatmul(), "To use FP8 kernels", and "Tensor Core Usage". */
typedef struct ms_cuda_gemm {
    ms_scalar type;   /* type of a and b; FP8: type of a */
    ms_scalar type_b; /* FP8: type of b; otherwise unused */
    ms_scalar result; /* type of c: `type`, or fp32 for bf16; bf16 or fp32 for FP8 */
    bool transpose_a, transpose_b;
    bool add;
    long m, n, k;
    long ld_a, ld_b, ld_c;
    long num_batch, stride_a, stride_b, stride_c;
    const void *a, *b;
    void *c;
    /* FP8: the product is (*scale_a a) (*scale_b b); device memory, read when it runs */
    const float *scale_a, *scale_b;
    /* FP8: accumulate with the reduced precision of the tensor cores, less than fp32 */
    bool fast;
    /* the size that differs from call to call, as rows of an expert do: similar sizes
     * have one algorithm (ms_cuda_gemm_bucket), so that the library is asked seldom */
    ms_cuda_gemm_size varies;
} ms_cuda_gemm;

/* Properties that select fused kernels for attention; compared as bytes. b sequences, s
 * queries, t keys, n heads, g KV heads, widths of keys (d) and of values (w). */
typedef struct ms_cuda_fused_shape {
    long num_batch, num_queries, num_keys, num_heads, num_kv_heads, width, value_width;
    long is_causal; /* query i sees keys 0 to i; otherwise it sees all keys */
    long is_grad;   /* gq, gk and gv, from o and lse; otherwise o and lse */
    /* gradients must be equal in every run; takes memory for all scores */
    long is_deterministic;
} ms_cuda_fused_shape;

/* Attention in bf16 by a library's fused kernels; sums and lse are fp32. Pointers are
 * aligned to 16 bytes; shapes of arrays are those of ms_cuda_attention_args. */
typedef struct ms_cuda_fused {
    ms_cuda_fused_shape shape;
    double scale; /* factor of scores before the softmax */
    const void *q, *k, *v, *go;
    void *o, *lse; /* inputs of the backward pass */
    void *gq, *gk, *gv;
} ms_cuda_fused;

#define MS_CUDA_ID_BYTES 128
typedef struct ms_cuda_id {
    unsigned char bytes[MS_CUDA_ID_BYTES];
} ms_cuda_id;

typedef enum ms_cuda_collective_kind {
    MS_CUDA_ALL_GATHER,     /* gathers `count` elements of each rank */
    MS_CUDA_REDUCE_SCATTER, /* leaves `count` elements on each rank */
    MS_CUDA_ALL_REDUCE,     /* `send` and `receive` may be one buffer */
    MS_CUDA_SEND,           /* `peer`: rank within the communicator */
    MS_CUDA_RECEIVE
} ms_cuda_collective_kind;

typedef struct ms_cuda_collective {
    ms_cuda_collective_kind kind;
    ms_scalar scalar;
    bool maximum;
    int peer;
    const void *send;
    void *receive;
    long count;
} ms_cuda_collective;

/* How a communicator is split. Ranks of one color >= 0 form a new one, in order of key;
 * color -1: none. */
typedef struct ms_cuda_split {
    int color, key;
    int max_ctas; /* most blocks of a kernel, one a multiprocessor; 0: the library's */
    /* Communicators split from the new one share its buffers, and so run their kernels one
     * after the other in the order of the calls; it is for splits only. */
    bool is_parent;
} ms_cuda_split;

typedef enum ms_cuda_direction {
    MS_CUDA_TO_DEVICE,
    MS_CUDA_TO_HOST,
    MS_CUDA_ON_DEVICE
} ms_cuda_direction;

typedef struct ms_cuda_driver {
    const char *name; /* name of the driver, "cuda" or "fake" */

    /* ---- devices ---- */
    /* Number of usable GPUs. MS_EIO: no driver, no GPU, a library missing or too old. */
    ms_status (*find)(ms_ctx *cx, int *num_devices);
    /* Opens the GPU and enters it (makes it current) in the calling thread; other threads
     * call `enter` to use it. */
    ms_status (*open)(ms_ctx *cx, int ordinal, ms_cuda_device **out);
    void (*enter)(ms_cuda_device *device);
    void (*close)(ms_cuda_device *device);
    ms_status (*describe)(ms_ctx *cx, int ordinal, ms_cuda_facts *out);
    /* Free and total memory of the device; memory used by other processes, contexts and
     * libraries is not free. */
    ms_status (*memory)(ms_ctx *cx, ms_cuda_device *device, double *free_bytes,
                        double *total_bytes);
    /* Device memory, 256-byte aligned; NULL if none is left. May wait for all work. */
    void *(*allocate)(ms_cuda_device *device, size_t bytes);
    void (*release)(ms_cuda_device *device, void *memory);
    /* Page-locked host memory: its copies overlap with other work. NULL if none left. */
    void *(*allocate_host)(ms_cuda_device *device, size_t bytes);
    void (*release_host)(ms_cuda_device *device, void *memory);

    /* ---- streams and events ---- */
    /* `urgent`: blocks of its kernels are placed before those of other streams that wait
     * for multiprocessors; running blocks are never displaced. */
    ms_status (*open_stream)(ms_ctx *cx, ms_cuda_device *device, bool urgent,
                             ms_cuda_stream **out);
    void (*close_stream)(ms_cuda_stream *stream);
    /* `timed`: `elapsed` may read it; other events order work only and cost less. */
    ms_status (*open_event)(ms_ctx *cx, ms_cuda_device *device, bool timed,
                            ms_cuda_event **out);
    void (*close_event)(ms_cuda_event *event);
    ms_status (*record)(ms_ctx *cx, ms_cuda_event *event, ms_cuda_stream *stream);
    /* Makes later work of the stream wait for the latest recording of the event. */
    ms_status (*wait)(ms_ctx *cx, ms_cuda_stream *stream, ms_cuda_event *event);
    /* Whether the GPU has reached the event; never waits. */
    ms_status (*query)(ms_ctx *cx, ms_cuda_event *event, bool *happened);
    /* Seconds between two timed events that have happened. */
    ms_status (*elapsed)(ms_ctx *cx, ms_cuda_event *from, ms_cuda_event *to,
                         double *seconds);
    /* Waits until the stream has done all its work. */
    ms_status (*finish)(ms_ctx *cx, ms_cuda_stream *stream);
    /* Fails if a launched kernel or an earlier call failed; never waits. */
    ms_status (*check)(ms_ctx *cx, ms_cuda_device *device);

    /* ---- work on a stream ---- */
    /* Copies asynchronously if host memory is from allocate_host. With other host memory
     * the call may wait; when it returns, that memory may be reused. */
    ms_status (*copy)(ms_ctx *cx, ms_cuda_stream *stream, void *to, const void *from,
                      size_t bytes, ms_cuda_direction direction);
    ms_status (*clear)(ms_ctx *cx, ms_cuda_stream *stream, void *to, size_t bytes);
    ms_status (*product)(ms_ctx *cx, ms_cuda_stream *stream, const ms_cuda_gemm *product);
    /* Whether cuBLASLt can run the GEMM, by its shapes, types and alignment, on the GPU
     * that the thread has entered; answers are cached. */
    ms_status (*has_product)(ms_ctx *cx, const ms_cuda_gemm *product, bool *has);
    /* Makes later GEMMs of the device take the algorithms of `choices`, which outlives
     * it, before its first GEMM. `times`: the first run of a GEMM that `choices` lacks
     * times its candidates, which waits for the stream; otherwise it takes the library's
     * first, as do all without this call. */
    void (*choose_gemms)(ms_cuda_device *device, ms_cuda_gemm_choices *choices,
                         bool times);

    /* Runs fused attention. A library that is missing or refuses it is no error: then
     * nothing was started, and *why tells the reason until the device is closed; NULL:
     * it was started. Workspace is the driver's own. */
    ms_status (*attention)(ms_ctx *cx, ms_cuda_stream *stream,
                           const ms_cuda_fused *attention, const char **why);

    /* ---- communicators ---- */

    ms_status (*make_id)(ms_ctx *cx, ms_cuda_id *out);
    /* Opens a communicator for splits: all its ranks call this with one id and wait for
     * all. */
    ms_status (*open_comm)(ms_ctx *cx, ms_cuda_device *device, const ms_cuda_id *id,
                           int rank, int size, ms_cuda_comm **out);
    /* Splits a communicator: all its ranks call this and wait for each other. *out is the
     * new one; NULL: none. */
    ms_status (*split)(ms_ctx *cx, ms_cuda_comm *comm, const ms_cuda_split *how,
                       ms_cuda_comm **out);
    /* Starts `num` operations together, so that sends and receives among them cannot
     * deadlock, on a communicator that is made by a split and is no parent. All ranks start
     * a communicator's collectives in the same order. May wait for the other ranks at the
     * first use of a kind of operation or of a peer. */
    ms_status (*communicate)(ms_ctx *cx, ms_cuda_comm *comm, ms_cuda_stream *stream,
                             const ms_cuda_collective *collectives, int num);
    /* Returns a failure that the communication library has found; never waits. */
    ms_status (*check_comm)(ms_ctx *cx, ms_cuda_comm *comm);
    /* Ends the communicator's work soon, even if a thread waits in it; only close_comm
     * may follow. Callable from any thread. */
    void (*abort_comm)(ms_cuda_comm *comm);
    void (*close_comm)(ms_cuda_comm *comm);

    /* ---- names for profilers ---- */

    void (*push_range)(const char *name);
    void (*pop_range)(void);
} ms_cuda_driver;

/* The driver that uses the CUDA run time, cuBLASLt, cuDNN and NCCL; all but the first are
 * opened on first use, so that the program starts without them. NULL if built without
 * CUDA. */
const ms_cuda_driver *ms_cuda_driver_of_libraries(void);

#endif
