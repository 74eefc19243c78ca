/* Initial values of weights, made in a GPU's memory: those of ms_initial_value
 * (exec/names.h) but for the last digits of its sin, cos and log, which are another library's. */
#ifndef MS_EXEC_CUDA_INITIALISE_H
#define MS_EXEC_CUDA_INITIALISE_H

#include "exec/array_args.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* `to`: of element `first`; fp32, fp64 or bf16 (rounded to fp32 before, as a copy of fp32
 * weights would be). */
void ms_cuda_initialise(ms_cuda_stream *stream, ms_scalar scalar, void *to,
                        const ms_initial_piece *piece);

#ifdef __cplusplus
}
#endif

#endif
