/* The whole tensors of a model as in Hugging Face files, with the expected results of
 * parameter units (exec/params/unit.h): initial values, gradients summed over ranks.
 * tests/support/whole_optimizers.h updates them. Elements are mapped independently of the tested code. */
#ifndef MS_TESTS_SUPPORT_WHOLE_TENSORS_H
#define MS_TESTS_SUPPORT_WHOLE_TENSORS_H

#include "exec/params/unit.h"

typedef struct ms_whole_tensor {
    const char *name;
    int num_dims;
    long shape[MS_MAX_DIMS];
    long count;
    bool is_norm, is_bias;
    bool *has_gradient; /* flag of each element; all arrays have `count` entries */
    double *initial, *gradient, *weight, *moments[2];
    double *seen; /* values that the units gave */
    int *visits;
} ms_whole_tensor;

typedef struct ms_whole {
    const ms_planned *planned;
    const ms_world *world;
    const ms_stage_blocks *parts; /* blocks of each stage */
    ms_initial initial;
    int num;
    ms_whole_tensor *tensors;
} ms_whole;

/* Makes the tensors; `initial` and `weight` get the initial values. Lives in the
 * arena. */
ms_whole *ms_whole_make(ms_arena *arena, const ms_planned *planned, const ms_world *world,
                        ms_initial initial);
/* The model's layer that is part `part` of a stage; -1: the part is no layer. */
long ms_whole_layer(const ms_whole *whole, int stage, int block);
ms_whole_tensor *ms_whole_find(const ms_whole *whole, const char *name);
ms_tensor_finder ms_whole_find_initial; /* `state` is the ms_whole */

/* Iterates over the elements of a rank's part of a weight; begin with {whole, name,
 * local}. */
typedef struct ms_whole_cursor {
    const ms_whole *whole;
    const ms_weight_name *name;
    const ms_local *local;
    long expert;
    ms_whole_tensor *tensor; /* tensor of the last element; NULL: no element yet */
} ms_whole_cursor;
/* Index in cursor->tensor of an element of the rank's part; -1: padding of the
 * vocabulary. */
long ms_whole_place(ms_whole_cursor *cursor, long element);

/* Contribution of a rank and one micro-batch to the gradient of an element: a whole
 * number, so that sums are exact. */
double ms_whole_contribution(const ms_whole *whole, const ms_program *program, int weight,
                             const ms_place *at, long microbatch, long place);
/* Computes `gradient`: the contributions of all ranks that have an element, summed over
 * micro-batches 0, ..., num_microbatches - 1. */
void ms_whole_sum(ms_whole *whole, long num_microbatches);
double ms_whole_sum_of_squares(const ms_whole *whole);

#endif
