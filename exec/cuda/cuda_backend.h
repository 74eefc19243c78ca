/* The backend "cuda": one GPU per rank, behind a driver (exec/cuda/cuda_driver.h), so that
 * tests can run it on an emulated device.
 *
 * Another backend, the inner one, runs the ranks: loop, as threads of this process, or
 * mpi, as one process per rank started by a launcher. It reports failures of ranks to
 * each other and moves data of the host program (counts of rows, sums of a step,
 * lengths of messages between GPUs).
 *
 * Data between GPUs moves by NCCL, or through host memory by the inner backend; the
 * latter is for tests of correctness, with several ranks per GPU or without NCCL. */
#ifndef MS_EXEC_CUDA_CUDA_BACKEND_H
#define MS_EXEC_CUDA_CUDA_BACKEND_H

#include "exec/core/backend.h"
#include "exec/cuda/cuda_memory.h"
#include "exec/cuda/cuda_table.h"
#include "exec/launch/environment.h"

typedef enum ms_cuda_transport {
    MS_CUDA_BY_NCCL,
    MS_CUDA_BY_HOST,
    MS_NUM_CUDA_TRANSPORTS
} ms_cuda_transport;
/* names "nccl" and "host"; NULL-terminated */
extern const char *const ms_cuda_transport_names[];

/* A backend and its components. */
typedef struct ms_cuda_backend {
    /* first member, so that a pointer to it is a pointer to the whole */
    ms_backend table;
    /* returns the driver; NULL if built without CUDA */
    const ms_cuda_driver *(*driver)(void);
    const ms_cuda_kernels *kernels;
    ms_cuda_transport transport;
    const ms_backend *inner; /* NULL: chosen by the launch of this process */
    /* smallest memory block of arenas; 0: the default for GPUs */
    size_t least_block_bytes;
} ms_cuda_backend;

/* mpi if the launch has several processes and MPI is built in, otherwise loop. */
const ms_backend *ms_cuda_inner_backend(const ms_launch *launch);

/* All but `workspace_bytes`, which depends on the kernels. */
extern const ms_backend ms_cuda_backend_table;

/* Use of a GPU by a rank of this process; valid between `open` and `close`. */
typedef struct ms_cuda_used {
    int ordinal;
    ms_cuda_facts facts;
    ms_cuda_memory_figures memory; /* use of the arena's memory */
    /* use by any process when the last run ended; 0 if unknown */
    double device_used_bytes;
    double device_total_bytes;
    bool lacks_fp8; /* some GEMMs of an fp8 run were computed in bf16 */
} ms_cuda_used;
ms_cuda_transport ms_cuda_job_transport(const ms_backend_job *job);
/* Whether ranks on this machine share GPUs under NCCL (NCCL_MULTI_RANK_GPU_ENABLE):
 * communication can then be tested for correctness, not for speed. The job must be
 * open. */
bool ms_cuda_job_shares_gpus(const ms_backend_job *job);
bool ms_cuda_job_used(const ms_backend_job *job, long rank, ms_cuda_used *out);

#endif
