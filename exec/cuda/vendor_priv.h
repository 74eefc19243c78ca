/* Declarations shared by the files of the CUDA driver: the device of a rank, libraries
 * opened on first use, errors. */
#ifndef MS_EXEC_CUDA_VENDOR_PRIV_H
#define MS_EXEC_CUDA_VENDOR_PRIV_H

#include "exec/cuda/cuda_driver.h"
#include "exec/cuda/cuda_gemm_choices.h"

#include <cuda_runtime.h>

#define MS_CUDA_REASON 512

typedef struct ms_cuda_gemms ms_cuda_gemms;
typedef struct ms_cuda_fused_state ms_cuda_fused_state;

struct ms_cuda_device {
    int ordinal;
    int major;
    char name[MS_CUDA_TEXT];
    /* the device's GEMMs by cuBLASLt; NULL before the first */
    ms_cuda_gemms *products;
    /* choices of algorithms, shared by devices; NULL: the library's first everywhere */
    ms_cuda_gemm_choices *choices;
    bool times_gemms; /* GEMMs that `choices` lacks are timed */
    /* the device's attention by cuDNN; NULL before the first */
    ms_cuda_fused_state *fused;
};

/* An ms_cuda_stream pointer is a cudaStream_t of the CUDA run time. */
static inline cudaStream_t ms_cuda_stream_of(ms_cuda_stream *stream)
{
    return (cudaStream_t)stream;
}

/* The device that the calling thread entered last; NULL if none. */
ms_cuda_device *ms_cuda_entered(void);

/* ---- errors ---- */

/* Fails with MS_EIO. `call` is the failed call's source text, of which the message has
 * the function name: the text before the parenthesis. */
ms_status ms_cuda_failed(ms_ctx *cx, cudaError_t error, const char *call);

#define MS_TRY_CUDA(cx, call)                                                            \
    do {                                                                                 \
        cudaError_t try_error_ = (call);                                                 \
        if (try_error_ != cudaSuccess)                                                   \
            return ms_cuda_failed((cx), try_error_, #call);                              \
    } while (0)

/* ---- workspaces: vendor_workspaces.c ---- */

/* Most streams on which a library's kernels run; a rank has compute and one per kind of
 * traffic. */
#define MS_CUDA_MAX_WORKSPACES 8

typedef struct ms_cuda_stream_workspace {
    cudaStream_t stream;
    void *memory; /* NULL: none yet */
    size_t bytes;
} ms_cuda_stream_workspace;

/* A library's workspaces, one a stream: kernels on different streams run at once. */
typedef struct ms_cuda_stream_workspaces {
    int num;
    ms_cuda_stream_workspace all[MS_CUDA_MAX_WORKSPACES];
} ms_cuda_stream_workspaces;

/* The stream's workspace, which is empty at first; NULL: MS_CUDA_MAX_WORKSPACES other
 * streams have one. */
ms_cuda_stream_workspace *ms_cuda_stream_workspace_of(ms_cuda_stream_workspaces *all,
                                                      cudaStream_t stream);
void ms_cuda_stream_workspaces_close(ms_cuda_stream_workspaces *all);

/* ---- libraries ---- */

/* A function that a library must have; its pointer goes to byte `offset` of the table. */
typedef struct ms_cuda_symbol {
    const char *name;
    size_t offset;
} ms_cuda_symbol;

typedef struct ms_cuda_library {
    const char *what;              /* name for messages, such as "cuBLASLt" */
    const char *const *files;      /* file names, tried in this order; NULL-terminated */
    const ms_cuda_symbol *symbols; /* required functions; terminated by a NULL name */
} ms_cuda_library;

/* Opens a library, which stays loaded, and fills `table`; false: cause in `reason`. */
bool ms_cuda_library_open(const ms_cuda_library *library, void *table,
                          char reason[MS_CUDA_REASON]);

/* Versions of cuBLASLt, cuDNN and NCCL; 0 if the library does not open (cause in
 * `reason`). */
int ms_cuda_gemm_version(char reason[MS_CUDA_REASON]);
int ms_cuda_fused_version(char reason[MS_CUDA_REASON]);
int ms_cuda_comm_version(char reason[MS_CUDA_REASON]);

/* ---- the driver's functions in other files ---- */

ms_status ms_cuda_library_gemm(ms_ctx *cx, ms_cuda_stream *stream,
                               const ms_cuda_gemm *product);
ms_status ms_cuda_library_has_gemm(ms_ctx *cx, const ms_cuda_gemm *product, bool *has);
void ms_cuda_close_gemms(ms_cuda_gemms *products);

ms_status ms_cuda_library_attention(ms_ctx *cx, ms_cuda_stream *stream,
                                    const ms_cuda_fused *attention, const char **why);
void ms_cuda_close_fused(ms_cuda_fused_state *fused);

ms_status ms_cuda_library_make_id(ms_ctx *cx, ms_cuda_id *out);
ms_status ms_cuda_library_open_comm(ms_ctx *cx, ms_cuda_device *device,
                                    const ms_cuda_id *id, int rank, int size,
                                    ms_cuda_comm **out);
ms_status ms_cuda_library_split(ms_ctx *cx, ms_cuda_comm *comm, const ms_cuda_split *how,
                                ms_cuda_comm **out);
ms_status ms_cuda_library_communicate(ms_ctx *cx, ms_cuda_comm *comm,
                                      ms_cuda_stream *stream,
                                      const ms_cuda_collective *collectives, int num);
ms_status ms_cuda_library_check_comm(ms_ctx *cx, ms_cuda_comm *comm);
void ms_cuda_library_abort_comm(ms_cuda_comm *comm);
void ms_cuda_library_close_comm(ms_cuda_comm *comm);

#endif
