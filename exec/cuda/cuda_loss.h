/* Cross entropy on a GPU in its three parts, and its gradient, for rows of logits whose
 * columns are split across ranks. */
#ifndef MS_EXEC_CUDA_CUDA_LOSS_H
#define MS_EXEC_CUDA_CUDA_LOSS_H

#include "exec/core/scalar.h"

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda/cuda_call.h"
ms_cuda_op ms_cuda_loss_max, ms_cuda_loss_sum, ms_cuda_loss, ms_cuda_loss_grad;
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Statistics are fp64 for logits of fp64, otherwise fp32. */
typedef struct ms_cuda_loss_args {
    ms_scalar scalar;   /* element type of the logits */
    const void *logits; /* logits (num_rows, width) */
    long num_rows, width;
    long num_real; /* number of columns before the padding, which is ignored */
    /* targets by position; rows of logits cover `length` stored indices of each
     * sequence */
    const int *targets;   /* target tokens (sequences, sequence_length) */
    const int *positions; /* position of each stored index; NULL if identical */
    long length, sequence_length, first_sequence, first_stored;
    long first_column; /* vocabulary index of the first column */
    double num_tokens;
    void *max, *sum, *target; /* statistics of each row (num_rows) */
    void *gradient; /* gradient (num_rows, width) of type `scalar`; may be the logits */
} ms_cuda_loss_args;

/* Sets max to the largest logit of each row; -infinity if there are no columns. */
void ms_cuda_loss_row_max(ms_cuda_stream *stream, const ms_cuda_loss_args *args);
/* Sets sum from max: sum of exp(logit - max); and target: the target's logit, 0 if it is
 * on another rank. */
void ms_cuda_loss_row_sum(ms_cuda_stream *stream, const ms_cuda_loss_args *args);
/* loss = max + log(sum) - target, for num_rows rows, all of type `statistic`. */
void ms_cuda_loss_of_rows(ms_cuda_stream *stream, ms_scalar statistic,
                          const ms_cuda_loss_args *args, void *loss);
/* gradient = (exp(logit - max) / sum - [is target]) / num_tokens; 0 in padding. */
void ms_cuda_loss_row_grad(ms_cuda_stream *stream, const ms_cuda_loss_args *args);

#ifdef __cplusplus
}
#endif

#endif
