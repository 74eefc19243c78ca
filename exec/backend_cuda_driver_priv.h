/* What the files of the CUDA driver share: the device of a rank, libraries that are
 * opened late, errors. */
#ifndef MS_EXEC_BACKEND_CUDA_DRIVER_PRIV_H
#define MS_EXEC_BACKEND_CUDA_DRIVER_PRIV_H

#include "exec/cuda_driver.h"

#include <cuda_runtime.h>

#define MS_CUDA_REASON 512

typedef struct ms_cuda_products ms_cuda_products;

struct ms_cuda_device {
    int ordinal;
    int major;
    ms_cuda_products *products; /* NULL until the first */
};

/* A stream is the run time's own; launches give its address to <<<>>>. */
static inline cudaStream_t ms_cuda_stream_of(ms_cuda_stream *stream)
{
    return (cudaStream_t)stream;
}

/* The device that the calling thread has entered. */
ms_cuda_device *ms_cuda_entered(void);

/* ---- errors ---- */

/* `call` is source text: what is before the parenthesis names it. */
ms_status ms_cuda_failed(ms_ctx *cx, cudaError_t error, const char *call);

#define MS_TRY_CUDA(cx, call)                                                            \
    do {                                                                                 \
        cudaError_t try_error_ = (call);                                                 \
        if (try_error_ != cudaSuccess)                                                   \
            return ms_cuda_failed((cx), try_error_, #call);                              \
    } while (0)

/* ---- libraries ---- */

/* A function that a library must have: where its address goes. */
typedef struct ms_cuda_symbol {
    const char *name;
    size_t offset;
} ms_cuda_symbol;

typedef struct ms_cuda_library {
    const char *what;              /* "cuBLASLt" */
    const char *const *files;      /* tried in this order; ends with NULL */
    const ms_cuda_symbol *symbols; /* ends with a name NULL */
} ms_cuda_library;

/* Opens the library and fills `table`, which stays for as long as the program runs.
 * False: `reason` says why not. */
bool ms_cuda_library_open(const ms_cuda_library *library, void *table,
                          char reason[MS_CUDA_REASON]);

/* 0: cannot be opened; then the reason. */
int ms_cuda_product_version(char reason[MS_CUDA_REASON]);
int ms_cuda_comm_version(char reason[MS_CUDA_REASON]);

/* ---- the driver's functions in other files ---- */

ms_status ms_cuda_library_product(ms_ctx *cx, ms_cuda_stream *stream,
                                  const ms_cuda_product *product);
ms_status ms_cuda_library_has_product(ms_ctx *cx, const ms_cuda_product *product,
                                      bool *has);
void ms_cuda_close_products(ms_cuda_products *products);

ms_status ms_cuda_library_make_id(ms_ctx *cx, ms_cuda_id *out);
ms_status ms_cuda_library_open_comm(ms_ctx *cx, ms_cuda_device *device,
                                    const ms_cuda_id *id, int rank, int size,
                                    ms_cuda_comm **out);
ms_status ms_cuda_library_split(ms_ctx *cx, ms_cuda_comm *comm, int color, int key,
                                ms_cuda_comm **out);
ms_status ms_cuda_library_communicate(ms_ctx *cx, ms_cuda_comm *comm,
                                      ms_cuda_stream *stream,
                                      const ms_cuda_collective *collectives, int num);
ms_status ms_cuda_library_check_comm(ms_ctx *cx, ms_cuda_comm *comm);
void ms_cuda_library_abort_comm(ms_cuda_comm *comm);
void ms_cuda_library_close_comm(ms_cuda_comm *comm);

#endif
