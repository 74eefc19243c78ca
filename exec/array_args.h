/* What work on arrays is given, in words that kernels of every device can read. */
#ifndef MS_EXEC_ARRAY_ARGS_H
#define MS_EXEC_ARRAY_ARGS_H

#include "exec/scalar.h"

#include <stddef.h>
#include <stdint.h>

/* Copies a box of elements between two row-major arrays: `num` of each outer dim (1 where
 * there is none), each run of `run` elements that lie together. */
#define MS_BOX_DIMS 4
typedef struct ms_box_copy {
    void *to;
    const void *from;
    long num[MS_BOX_DIMS];                                 /* outer to inner */
    long to_stride[MS_BOX_DIMS], from_stride[MS_BOX_DIMS]; /* elements */
    long run;
    size_t element_bytes;
} ms_box_copy;

/* AdamW (Loshchilov and Hutter 2019, algorithm 2), as PyTorch's torch/optim/adamw.py:
 * weight decay first, bias correction by step. */
typedef struct ms_adamw {
    double learning_rate, beta1, beta2, epsilon, weight_decay;
    long step;             /* counted from 1 */
    double gradient_scale; /* of the clip; 1: none */
} ms_adamw;

/* Elements that an update concerns; types by ms_precision: weight `real`, gradient
 * `gradient`, the others `state`. */
typedef struct ms_update {
    ms_scalar scalar; /* of the weight */
    void *weight;
    void *master; /* NULL where the precision has none */
    const void *gradient;
    void *first_moment, *second_moment;
    long count;
} ms_update;

/* to = from + plus, rounded: `from` is in the type that sums of `scalar` are made in
 * (fp32 for bf16), the others in `scalar`. */
typedef struct ms_rounded_sum {
    ms_scalar scalar;
    void *to;
    const void *from, *plus; /* plus NULL: 0 */
    long count;
} ms_rounded_sum;

/* Initial values (exec/names.h) of a piece of a rank's part of a weight: elements first
 * .. first + number - 1 of the part, row-major over `shape`, which lie together in
 * memory. Element i[] of the part is at place offset + sum over dims of stride[d]
 * (start[d] + i[d]) of the tensor that has the key; a weight of several experts, each
 * with its own key, takes a call for each. */
#define MS_INITIAL_DIMS 4
typedef struct ms_initial_piece {
    uint64_t key; /* ms_initial_key */
    double deviation, spread;
    bool is_norm, is_bias;
    bool in_bf16; /* values are rounded to bf16, whatever they are stored as */
    int num_dims;
    long shape[MS_INITIAL_DIMS], start[MS_INITIAL_DIMS], stride[MS_INITIAL_DIMS];
    long offset;
    long count; /* of the tensor: places from here on are padding, and 0 */
    long first, number;
} ms_initial_piece;

#endif
