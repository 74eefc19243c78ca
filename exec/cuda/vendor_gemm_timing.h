/* Times the candidate algorithms of a GEMM on a stream. */
#ifndef MS_EXEC_CUDA_VENDOR_GEMM_TIMING_H
#define MS_EXEC_CUDA_VENDOR_GEMM_TIMING_H

#include "exec/cuda/cuda_gemm_choices.h"
#include "exec/cuda/vendor_priv.h"

typedef struct ms_cuda_candidates {
    int num; /* 1 to MS_CUDA_GEMM_CANDIDATES */
    /* Enqueues the GEMM by one candidate; false if the library refuses it. */
    bool (*run)(void *state, int candidate, cudaStream_t stream);
    void *state;
} ms_cuda_candidates;

/* Sets the least seconds of each candidate; HUGE_VAL: refused. Waits for the stream. */
ms_status ms_cuda_time_candidates(ms_ctx *cx, cudaStream_t stream,
                                  const ms_cuda_candidates *candidates,
                                  double seconds[MS_CUDA_GEMM_CANDIDATES]);

/* The candidate to use: the fastest, unless the first takes at most 2 % more time. */
int ms_cuda_fastest_candidate(int num, const double seconds[MS_CUDA_GEMM_CANDIDATES]);

#endif
