/* A transfer on a GPU whose other ranks do not exist: a kernel that holds as many
 * multiprocessors as the transfer would, writes made-up data, and ends after its time. */
#ifndef MS_EXEC_CUDA_CUDA_MODELLED_H
#define MS_EXEC_CUDA_CUDA_MODELLED_H

#include "exec/core/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Sets to[i], i < count, to from[i % num_from] with a random sign, but in own_first ...
 * own_first + num_from - 1 without; where num_from is 0, to uniform values of mean 0 and
 * variance 1. The kernel ends `seconds` after it began, if it is done by then; its blocks
 * each fill a multiprocessor meanwhile. */
typedef struct ms_cuda_modelled {
    ms_scalar scalar;
    void *to; /* may be NULL: nothing is written */
    const void *from;
    long count, num_from, own_first; /* own_first -1: no part is the rank's own */
    double seconds;
    int num_blocks; /* 1 where no multiprocessors are held */
    unsigned long seed;
} ms_cuda_modelled;

void ms_cuda_model_transfer(ms_cuda_stream *stream, const ms_cuda_modelled *how);

#ifdef __cplusplus
}
#endif

#endif
