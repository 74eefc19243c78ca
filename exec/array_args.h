/* What work on arrays is given, in words that kernels of every device can read. */
#ifndef MS_EXEC_ARRAY_ARGS_H
#define MS_EXEC_ARRAY_ARGS_H

#include "exec/scalar.h"

#include <stddef.h>

/* Copies a box of elements between two row-major arrays: `num` of each outer dim (1 where there is none), each run of `run` elements that lie together. */
#define MS_BOX_DIMS 4
typedef struct ms_box_copy {
    void *to;
    const void *from;
    long num[MS_BOX_DIMS];                                 /* outer to inner */
    long to_stride[MS_BOX_DIMS], from_stride[MS_BOX_DIMS]; /* elements */
    long run;
    size_t element_bytes;
} ms_box_copy;

/* AdamW (Loshchilov and Hutter 2019, algorithm 2), as PyTorch's torch/optim/adamw.py: weight decay first, bias correction by step. */
typedef struct ms_adamw {
    double learning_rate, beta1, beta2, epsilon, weight_decay;
    long step;             /* counted from 1 */
    double gradient_scale; /* of the clip; 1: none */
} ms_adamw;

/* Elements that an update concerns; types by ms_precision: weight `real`, gradient `gradient`, the others `state`. */
typedef struct ms_update {
    ms_scalar scalar; /* of the weight */
    void *weight;
    void *master; /* NULL where the precision has none */
    const void *gradient;
    void *first_moment, *second_moment;
    long count;
} ms_update;

#endif
