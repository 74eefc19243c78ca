/* Argument structs of array operations (exec/core/arrays.h) for CPU and CUDA kernels. */
#ifndef MS_EXEC_CORE_ARRAY_ARGS_H
#define MS_EXEC_CORE_ARRAY_ARGS_H

#include "exec/core/scalar.h"

#include <stddef.h>
#include <stdint.h>

/* Copy of a box of row-major array `from` into row-major array `to`: one nested loop per
 * entry of num[] (1: unused); its body copies `run` contiguous elements. */
#define MS_BOX_DIMS 4
typedef struct ms_box_copy {
    void *to;
    const void *from;
    long num[MS_BOX_DIMS]; /* iterations per dim, outer to inner */
    long to_stride[MS_BOX_DIMS], from_stride[MS_BOX_DIMS]; /* in elements, per dim */
    long run;
    size_t element_bytes;
} ms_box_copy;

/* Constants of one AdamW update (Loshchilov and Hutter 2019, algorithm 2) in the order of
 * PyTorch's torch/optim/adamw.py: weight decay first, bias correction by step. */
typedef struct ms_adamw {
    double learning_rate, beta1, beta2, epsilon, weight_decay;
    long step;             /* optimizer step, counted from 1 */
    double gradient_scale; /* factor on gradients; 1 if they are not clipped */
} ms_adamw;

/* Elements of a weight that AdamW updates, in types of ms_precision: `weight` in `real`,
 * `gradient` in `gradient`, master weight and moments in `state`; all fp32 beside a
 * master weight. */
typedef struct ms_update {
    ms_scalar scalar; /* type of the weight */
    void *weight;
    void *master; /* master weight; NULL if the precision has none */
    const void *gradient;
    void *first_moment, *second_moment;
    long count;
} ms_update;

/* Sum to = from + plus; `from` has the accumulation type of `scalar` (fp32 for bf16). */
typedef struct ms_rounded_sum {
    ms_scalar scalar;
    void *to;
    const void *from, *plus; /* plus may be NULL (adds 0) */
    long count;
} ms_rounded_sum;

/* Piece of a weight whose random initial values (exec/params/names.h) are wanted:
 * elements first .. first + number - 1 of a rank's row-major shard. Element i[] of the
 * shard has flat index offset + sum over dims d of stride[d] (start[d] + i[d]) in the
 * whole tensor. Each expert's weight counts as a whole tensor. */
#define MS_INITIAL_DIMS 4
typedef struct ms_initial_piece {
    uint64_t key; /* seeds the tensor's random numbers (ms_initial_key) */
    double deviation, spread;
    bool is_norm, is_bias;
    bool in_bf16; /* values are rounded to bf16, whatever type they are stored in */
    int num_dims;
    long shape[MS_INITIAL_DIMS], start[MS_INITIAL_DIMS], stride[MS_INITIAL_DIMS];
    long offset;
    long count; /* elements of the whole tensor; larger indices are padding and get 0 */
    long first, number;
} ms_initial_piece;

#endif
