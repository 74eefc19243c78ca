/* The tensors of a model as Hugging Face has them, with what units must make of them:
 * initial values, gradients as sums over ranks, AdamW on one array. Elements are found by
 * a mapping of its own, one at a time. */
#ifndef MS_TESTS_SUPPORT_WHOLE_TENSORS_H
#define MS_TESTS_SUPPORT_WHOLE_TENSORS_H

#include "exec/params/unit.h"

typedef struct ms_whole_tensor {
    const char *name;
    long count;
    bool is_norm, is_bias;
    bool *has_gradient; /* (count), as all others */
    double *initial, *gradient, *weight, *moments[2];
    double *seen; /* what units gave */
    int *visits;
} ms_whole_tensor;

typedef struct ms_whole {
    const ms_planned *planned;
    const ms_world *world;
    const ms_stage_blocks *parts; /* by stage */
    ms_initial initial;
    int num;
    ms_whole_tensor *tensors;
} ms_whole;

/* Initial values are in `initial` and `weight`. Lives in the arena. */
ms_whole *ms_whole_make(ms_arena *arena, const ms_planned *planned, const ms_world *world,
                        ms_initial initial);
/* The layer of the model that is a part of a stage; -1: none. */
long ms_whole_layer(const ms_whole *whole, int stage, int part);
ms_whole_tensor *ms_whole_find(const ms_whole *whole, const char *name);
ms_tensor_finder ms_whole_find_initial; /* `state` is the ms_whole */

/* Goes through the elements of a local part: start with {whole, name, local}. */
typedef struct ms_whole_cursor {
    const ms_whole *whole;
    const ms_weight_name *name;
    const ms_local *local;
    long expert;
    ms_whole_tensor *tensor; /* NULL: none looked up yet */
} ms_whole_cursor;
/* The place of an element in cursor->tensor; -1: padding of the vocabulary. */
long ms_whole_place(ms_whole_cursor *cursor, long element);

/* What a rank contributes to the gradient of an element with one micro-batch: whole
 * numbers, so that sums are exact. */
double ms_whole_contribution(const ms_whole *whole, const ms_program *program, int weight,
                             const ms_place *at, long microbatch, long place);
/* gradient = the sum of the contributions of all ranks that have the element, of
 * micro-batches 0 .. num - 1. */
void ms_whole_sum(ms_whole *whole, long num_microbatches);
/* AdamW by the formulas of PyTorch's documentation, on `weight`. */
void ms_whole_update(ms_whole *whole, const ms_adamw *how);
double ms_whole_sum_of_squares(const ms_whole *whole);

#endif
