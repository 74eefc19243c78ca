/* The backend "cuda": a GPU a rank, behind a driver (exec/cuda_driver.h), so that tests
 * run it on a device in memory.
 *
 * Who carries the ranks is another backend, the inner one: loop, where they are threads
 * of this process, or mpi, where a launcher started a process for each. It runs them, tells
 * them of each other's failures, and moves what is the program's own (counts of rows, sums
 * of a step, and how long messages between GPUs are).
 *
 * Between GPUs data goes by NCCL, or through the memory of the hosts by the inner
 * backend: that is for tests of correctness, with several ranks on a GPU, or without NCCL. */
#ifndef MS_EXEC_CUDA_BACKEND_H
#define MS_EXEC_CUDA_BACKEND_H

#include "exec/backend.h"
#include "exec/cuda_memory.h"
#include "exec/cuda_table.h"
#include "exec/environment.h"

typedef enum ms_cuda_transport {
    MS_CUDA_BY_NCCL,
    MS_CUDA_BY_HOST,
    MS_NUM_CUDA_TRANSPORTS
} ms_cuda_transport;
extern const char *const ms_cuda_transport_names[]; /* "nccl" "host", NULL */

/* A backend with all that it is made of. */
typedef struct ms_cuda_backend {
    ms_backend table; /* first: a pointer to it is one to the whole */
    const ms_cuda_driver *(*driver)(void); /* NULL: built without one */
    const ms_cuda_kernels *kernels;
    ms_cuda_transport transport;
    const ms_backend *inner;  /* NULL: as this process was started */
    size_t least_block_bytes; /* of the arenas; 0: as is good for a GPU */
} ms_cuda_backend;

/* mpi for one of several processes, in a program built with MPI; else loop. */
const ms_backend *ms_cuda_inner_backend(const ms_launch *launch);

/* Functions of the table but for `workspace_bytes`, which knows the kernels. */
extern const ms_backend ms_cuda_backend_table;

/* What a rank of this process found and used; between `open` and `close`. */
typedef struct ms_cuda_used {
    int ordinal;
    ms_cuda_facts facts;
    ms_cuda_memory_figures memory; /* of the arena */
    double device_used_bytes;      /* by anybody, when the last run ended; 0: not known */
    double device_total_bytes;
    bool lacks_fp8; /* some products of a run in fp8 were made in bf16 */
} ms_cuda_used;
ms_cuda_transport ms_cuda_job_transport(const ms_backend_job *job);
/* Whether ranks on this machine share GPUs by NCCL (NCCL_MULTI_RANK_GPU_ENABLE): that
 * they exchange something can be tried, how fast cannot. The job is open. */
bool ms_cuda_job_shares_gpus(const ms_backend_job *job);
/* False: the rank is not of this process, or has not run. */
bool ms_cuda_job_used(const ms_backend_job *job, long rank, ms_cuda_used *out);

#endif
