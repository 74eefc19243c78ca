/* Folder exec/cuda: kernels on GPUs, code that launches them, and the cuda backend; no
 * plans.
 *
 * The backend "cuda": one GPU per rank, behind a driver (exec/cuda/cuda_driver.h), so
 * that tests can run it on an emulated device.
 *
 * Another backend, the inner one, runs the ranks: loop, as threads of this process, or
 * mpi, as one process per rank. The inner backend also tells ranks of each other's
 * failures and transfers data of the host program (row counts, sums of a step, lengths of
 * GPU messages).
 *
 * Data between GPUs move by NCCL, or through host memory by the inner backend. The latter
 * is for tests of correctness, with several ranks per GPU or without NCCL. */
#ifndef MS_EXEC_CUDA_CUDA_BACKEND_H
#define MS_EXEC_CUDA_CUDA_BACKEND_H

#include "exec/core/backend.h"
#include "exec/cuda/cuda_memory.h"
#include "exec/cuda/cuda_table.h"
#include "exec/launch/environment.h"

typedef enum ms_cuda_transport {
    MS_CUDA_BY_NCCL,
    MS_CUDA_BY_HOST,
    MS_CUDA_MODELLED, /* one rank alone */
    MS_NUM_CUDA_TRANSPORTS
} ms_cuda_transport;
/* names "nccl", "host" and "modelled"; NULL-terminated */
extern const char *const ms_cuda_transport_names[];

/* "own", "cudnn" and "cudnn-deterministic", of ms_run_attention; NULL-terminated */
extern const char *const ms_run_attention_names[];

/* The cuda backend's table of functions, and its settings. */
typedef struct ms_cuda_backend {
    /* first member, since pointers to it are cast to ms_cuda_backend pointers */
    ms_backend table;
    /* returns the GPU functions; NULL if built without CUDA */
    const ms_cuda_driver *(*driver)(void);
    const ms_cuda_kernels *kernels;
    ms_cuda_transport transport;
    const ms_backend *inner; /* backend that runs the ranks; NULL: mpi or loop */
    /* smallest memory block requested from a GPU; 0: 256 MiB */
    size_t least_block_bytes;
} ms_cuda_backend;

/* The backend that runs a cuda job's ranks: mpi for several processes, otherwise loop. */
const ms_backend *ms_cuda_inner_backend(const ms_launch *launch);

/* Functions of the cuda backend but `workspace_bytes`, which depends on the kernels. */
extern const ms_backend ms_cuda_backend_table;

/* Use of a GPU by a rank of this process in its last run. */
typedef struct ms_cuda_used {
    int ordinal;
    ms_cuda_facts facts;
    ms_cuda_memory_figures memory; /* the allocator's blocks and their use */
    /* device memory in use by all processes after the run; 0 if unknown */
    double device_used_bytes;
    double device_total_bytes;
    /* memory that the rank's process does not hold in blocks; NaN if ranks share the GPU */
    double outside_arena_bytes;
    int num_communicators; /* communicators by NCCL */
    /* their predicted buffers (ms_cuda_comm_memory); NaN if NCCL's sizes are not its own
     * defaults */
    double communicator_bytes;
    ms_cuda_attention_use attention;
    bool lacks_fp8; /* some GEMMs of an fp8 run were computed in bf16 */
} ms_cuda_used;
ms_cuda_transport ms_cuda_job_transport(const ms_backend_job *job);
/* Whether several ranks communicate by NCCL on one GPU (NCCL_MULTI_RANK_GPU_ENABLE): such
 * a run shows that communication is correct, not how fast it is. The job must be open. */
bool ms_cuda_job_shares_gpus(const ms_backend_job *job);
bool ms_cuda_job_used(const ms_backend_job *job, long rank, ms_cuda_used *out);

#endif
