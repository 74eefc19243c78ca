/* What the CUDA backend asks of a GPU and its libraries: memory, streams, events, copies,
 * matrix products, communicators. backend_cuda_driver*.c do it by the CUDA run time,
 * cuBLASLt and NCCL; tests have a device in memory that keeps every stream's work until
 * something waits for it, and does it in any order that streams and events allow.
 * Pointers to a device's memory are never read by the program.
 *
 * Nothing waits but what says so. Errors: MS_EIO with a message that names the call and
 * the library's words. */
#ifndef MS_EXEC_CUDA_DRIVER_H
#define MS_EXEC_CUDA_DRIVER_H

#include "base/diag.h"
#include "exec/scalar.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct ms_cuda_device ms_cuda_device; /* a rank's hold on a GPU */
typedef struct ms_cuda_stream ms_cuda_stream;
typedef struct ms_cuda_event ms_cuda_event; /* has a time */
typedef struct ms_cuda_comm ms_cuda_comm;

#define MS_CUDA_TEXT 128

/* What a device is, for records and profiles. */
typedef struct ms_cuda_facts {
    char name[MS_CUDA_TEXT]; /* "NVIDIA H200" */
    int major, minor;        /* compute capability */
    int num_sms;
    double memory_bytes; /* in all */
    double shared_bytes; /* that a block may use */
    double l2_bytes;
    double clock_hz, memory_clock_hz, bus_bits; /* 0: not told */
    int driver_version, runtime_version, blas_version,
        nccl_version; /* as the libraries count them; 0: not there */
} ms_cuda_facts;

/* c (m, n) = a (m, k) b (k, n) [+ c], all row-major with leading dims ld_*: rows of the
 * matrix as it lies, before it is transposed; `num_batch` products (0 and 1: one) that
 * lie stride_* elements apart. Sums are in fp32, in fp64 for fp64.
 *
 * Of FP8 (compute capability 8.9 and later) the library has a product as it lies in both
 * operands along k alone: transpose_b without transpose_a; one product; k and n multiples
 * of 16, addresses and leading dims of 16 bytes; not both operands e5m2. Source: cuBLAS
 * documentation 13.0, cublasLtMatmul(), "To use FP8 kernels", and its section Tensor
 * Core Usage. */
typedef struct ms_cuda_product {
    ms_scalar type;   /* of a and b; FP8: of a */
    ms_scalar type_b; /* FP8: of b; otherwise not looked at */
    ms_scalar result; /* of c: type, or fp32 for bf16; of FP8 bf16 or fp32 */
    bool transpose_a, transpose_b;
    bool add;
    long m, n, k;
    long ld_a, ld_b, ld_c;
    long num_batch, stride_a, stride_b, stride_c;
    const void *a, *b;
    void *c;
    /* FP8: what elements of a and of b stand for is their value times this, on the
     * device; looked at when its turn comes. */
    const float *scale_a, *scale_b;
    bool fast; /* FP8: sums stay in the digits of the tensor cores, fewer than fp32's */
} ms_cuda_product;

#define MS_CUDA_ID_BYTES 128
typedef struct ms_cuda_id {
    unsigned char bytes[MS_CUDA_ID_BYTES];
} ms_cuda_id;

typedef enum ms_cuda_collective_kind {
    MS_CUDA_ALL_GATHER,     /* count: of each rank */
    MS_CUDA_REDUCE_SCATTER, /* count: of each rank */
    MS_CUDA_ALL_REDUCE,     /* send == receive allowed */
    MS_CUDA_SEND,           /* to `peer` of the communicator */
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

typedef enum ms_cuda_direction {
    MS_CUDA_TO_DEVICE,
    MS_CUDA_TO_HOST,
    MS_CUDA_ON_DEVICE
} ms_cuda_direction;

typedef struct ms_cuda_driver {
    const char *name; /* "cuda", "fake" */

    /* ---- devices ---- */
    /* Number of GPUs that can be used. MS_EIO, with the reason: no driver, no GPU, a
     * library that is missing or too old. */
    ms_status (*find)(ms_ctx *cx, int *num_devices);
    /* The calling thread works with it from then on; so does every other thread that
     * calls `enter`. */
    ms_status (*open)(ms_ctx *cx, int ordinal, ms_cuda_device **out);
    void (*enter)(ms_cuda_device *device);
    void (*close)(ms_cuda_device *device);
    ms_status (*describe)(ms_ctx *cx, int ordinal, ms_cuda_facts *out);
    /* What is free, and in use by anybody: contexts and libraries too. */
    ms_status (*memory)(ms_ctx *cx, ms_cuda_device *device, double *free_bytes,
                        double *total_bytes);
    /* 256-byte aligned; NULL: no memory. May wait for all work on the device. */
    void *(*allocate)(ms_cuda_device *device, size_t bytes);
    void (*release)(ms_cuda_device *device, void *memory);
    /* Of the program, such that copies go on beside it. NULL: no memory. */
    void *(*allocate_host)(ms_cuda_device *device, size_t bytes);
    void (*release_host)(ms_cuda_device *device, void *memory);

    /* ---- streams and events ---- */
    ms_status (*open_stream)(ms_ctx *cx, ms_cuda_device *device, ms_cuda_stream **out);
    void (*close_stream)(ms_cuda_stream *stream);
    ms_status (*open_event)(ms_ctx *cx, ms_cuda_device *device, ms_cuda_event **out);
    void (*close_event)(ms_cuda_event *event);
    ms_status (*record)(ms_ctx *cx, ms_cuda_event *event, ms_cuda_stream *stream);
    /* What the stream is given next starts after the event, as it was recorded last. */
    ms_status (*wait)(ms_ctx *cx, ms_cuda_stream *stream, ms_cuda_event *event);
    /* Whether it has happened; never waits. */
    ms_status (*query)(ms_ctx *cx, ms_cuda_event *event, bool *happened);
    /* Between two events that have happened. */
    ms_status (*elapsed)(ms_ctx *cx, ms_cuda_event *from, ms_cuda_event *to,
                         double *seconds);
    /* Waits until the stream has done all it was given. */
    ms_status (*finish)(ms_ctx *cx, ms_cuda_stream *stream);
    /* What kernels that were launched, and anything before, failed of; never waits. */
    ms_status (*check)(ms_ctx *cx, ms_cuda_device *device);

    /* ---- work on a stream ---- */
    /* Memory of the program that is not from allocate_host: may wait, and can be used
     * again after the call. */
    ms_status (*copy)(ms_ctx *cx, ms_cuda_stream *stream, void *to, const void *from,
                      size_t bytes, ms_cuda_direction direction);
    ms_status (*clear)(ms_ctx *cx, ms_cuda_stream *stream, void *to, size_t bytes);
    ms_status (*product)(ms_ctx *cx, ms_cuda_stream *stream,
                         const ms_cuda_product *product);
    /* Whether the library can make it on the GPU that the thread has entered; known by
     * its shapes, types and addresses, and kept: asking again is cheap. */
    ms_status (*has_product)(ms_ctx *cx, const ms_cuda_product *product, bool *has);

    /* ---- communicators ---- */
    ms_status (*make_id)(ms_ctx *cx, ms_cuda_id *out);
    /* All `size` ranks call it with the same id; waits for them. */
    ms_status (*open_comm)(ms_ctx *cx, ms_cuda_device *device, const ms_cuda_id *id,
                           int rank, int size, ms_cuda_comm **out);
    /* All ranks of `comm` call it; those with the same color form one, ordered by key;
     * color -1: none (out NULL). Waits. */
    ms_status (*split)(ms_ctx *cx, ms_cuda_comm *comm, int color, int key,
                       ms_cuda_comm **out);
    /* Together: sends and receives of one call wait for each other on no one. All ranks
     * of a communicator start its collectives in the same order. */
    ms_status (*communicate)(ms_ctx *cx, ms_cuda_comm *comm, ms_cuda_stream *stream,
                             const ms_cuda_collective *collectives, int num);
    /* Whether the library has found a failure; never waits. */
    ms_status (*check_comm)(ms_ctx *cx, ms_cuda_comm *comm);
    /* Its work ends soon, wherever it is; then nothing but close_comm. From any thread. */
    void (*abort_comm)(ms_cuda_comm *comm);
    void (*close_comm)(ms_cuda_comm *comm);

    /* ---- names for profilers ---- */
    void (*push_range)(const char *name);
    void (*pop_range)(void);
} ms_cuda_driver;

/* By the CUDA run time, cuBLASLt and NCCL. The two libraries are opened when they are
 * first used, so that the program starts without them. NULL: built without CUDA. */
const ms_cuda_driver *ms_cuda_driver_of_libraries(void);

#endif
