/* Cross entropy on a GPU in three parts (row maxima, row sums, losses), and its gradient,
 * for rows of logits whose columns are split across ranks. */
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

/* Logits of a rank and their row statistics, which are fp64 for fp64, otherwise fp32. */
typedef struct ms_cuda_loss_args {
    ms_scalar scalar;   /* element type of the logits */
    const void *logits; /* (num_rows, width) */
    long num_rows, width;
    long num_real; /* columns before the padding of the vocabulary */
    /* Targets are in order of position; logits as stored, `length` tokens a sequence. */
    const int *targets;   /* (sequences, sequence_length) target tokens */
    const int *positions; /* position of each stored token; NULL if in order */
    long length, sequence_length, first_sequence, first_stored;
    long first_column; /* vocabulary index of the first column of logits */
    long ahead;        /* targets are those of the tokens so many positions later */
    double num_tokens; /* tokens of the global batch / weight of the loss */
    double scale;      /* factor of logits */
    double cap;        /* soft cap c: logits become c tanh(logit / c); 0: none */
    void *max, *sum, *target; /* (num_rows) each: statistics of rows */
    void *gradient;           /* (num_rows, width) of type `scalar`; may be the logits */
} ms_cuda_loss_args;

/* Sets max to the largest logit of each row; -infinity if a rank has no real columns. */
void ms_cuda_loss_row_max(ms_cuda_stream *stream, const ms_cuda_loss_args *args);
/* Sets sum to the row's sum of exp(logit - max), and target to the target token's logit,
 * 0 if that is on another rank; if it is beyond the end of the sequence, sum and target,
 * added up over ranks, are 1 and max, so that the loss is 0. */
void ms_cuda_loss_row_sum(ms_cuda_stream *stream, const ms_cuda_loss_args *args);
/* Sets loss = max + log(sum) - target of num_rows rows, all of type `statistic`. */
void ms_cuda_loss_of_rows(ms_cuda_stream *stream, ms_scalar statistic,
                          const ms_cuda_loss_args *args, void *loss);
/* Sets gradient = (exp(logit - max) / sum - [is target]) / num_tokens; 0 in padding and
 * for tokens whose target is beyond the end of their sequence. */
void ms_cuda_loss_row_grad(ms_cuda_stream *stream, const ms_cuda_loss_args *args);

#ifdef __cplusplus
}
#endif

#endif
