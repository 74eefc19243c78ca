/* Cross entropy on a GPU in its three parts, and its gradient, for rows of logits of
 * which this rank has some columns. */
#ifndef MS_EXEC_CUDA_LOSS_H
#define MS_EXEC_CUDA_LOSS_H

#include "exec/scalar.h"

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda_call.h"
ms_cuda_op ms_cuda_loss_max, ms_cuda_loss_sum, ms_cuda_loss, ms_cuda_loss_grad;
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* Statistics are fp64 for logits of fp64, otherwise fp32. */
typedef struct ms_cuda_loss_args {
    ms_scalar scalar;   /* of the logits */
    const void *logits; /* (num_rows, width) */
    long num_rows, width;
    long num_real; /* columns before the padding, which takes no part */
    /* targets, by position; rows of x go over `length` stored indices of a sequence */
    const int *targets;   /* (sequences, sequence_length) */
    const int *positions; /* of stored indices; NULL: the same */
    long length, sequence_length, first_sequence, first_stored;
    long first_column; /* in the vocabulary */
    double num_tokens;
    void *max, *sum, *target; /* (num_rows) */
    void *gradient;           /* (num_rows, width), of type `scalar`; may be the logits */
} ms_cuda_loss_args;

/* Fills max: -infinity where there are no columns. */
void ms_cuda_loss_row_max(ms_cuda_stream *stream, const ms_cuda_loss_args *args);
/* From max: sum of exp(logit - max); target: the target's logit, 0 where another rank has it. */
void ms_cuda_loss_row_sum(ms_cuda_stream *stream, const ms_cuda_loss_args *args);
/* loss = max + log(sum) - target, num_rows of them, all of type `statistic`. */
void ms_cuda_loss_of_rows(ms_cuda_stream *stream, ms_scalar statistic,
                          const ms_cuda_loss_args *args, void *loss);
/* From max and sum: (exp(logit - max) / sum - [is target]) / num_tokens; 0 in padding. */
void ms_cuda_loss_row_grad(ms_cuda_stream *stream, const ms_cuda_loss_args *args);

#ifdef __cplusplus
}
#endif

#endif
