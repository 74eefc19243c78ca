/* Whether two runs of one model and the same tokens did the same: a sharded run and its
 * unsharded reference. */
#ifndef MS_EXEC_CHECK_H
#define MS_EXEC_CHECK_H

#include "exec/runner.h"

/* Relative differences. Of a loss: |difference| over the reference's; of a tensor: the
 * largest |difference| of an element over the largest |value| of the reference. Updated
 * weights in fp32 are reported but not held to a tolerance: AdamW divides by the root of
 * the second moment, so rounding of a gradient near 0 moves a weight by a whole step. */
typedef struct ms_check_tolerance {
    double first_loss, later_loss, gradient, weight; /* INFINITY: not held */
} ms_check_tolerance;
/* Of two runs by the same kernels, fp32: 1e-6, 1e-5, 1e-5, none; fp64: 1e-12 each.
 * `other_kernels`: the run is a GPU's and the reference a CPU's, which takes sums in
 * another order and in more digits, fp32: 1e-4 each, weights not held; fp64: 1e-10; bf16:
 * 2e-2, of a reference in fp32 that begins with weights rounded to bf16
 * (weights_in_bf16), as the run computes with. Roundings add up with the root of their
 * number: models of four layers are within 1.7e-2 where values are as in training. fp8,
 * of the same reference: losses 5e-2, which is what rounding to e4m3 moves logits by
 * (docs/formulas 12.10), gradients not held, since single elements have no bound. */
ms_check_tolerance ms_check_tolerance_of(ms_real_type type, bool other_kernels);

/* The worst of its kind. */
typedef struct ms_check_worst {
    const char *name; /* of the tensor; NULL: nothing was compared */
    /* NaN: a value that is none; INFINITY: absent, of another shape, or not 0 as in
     * the reference */
    double relative;
    int num_tensors;
} ms_check_worst;

typedef struct ms_check {
    ms_check_tolerance tolerance;
    long num_steps;
    /* largest relative difference; later steps: 0 when there are none */
    double first_loss, later_loss;
    long worst_step;          /* of later_loss, counted from 1 */
    ms_check_worst gradients; /* of the first step */
    ms_check_worst weights;   /* after the last step */
    bool passes;
    const char *failure; /* one sentence; NULL when it passes */
} ms_check;

/* Compares what both have: as many steps, and the tensors of either. Texts live in the
 * arena, or in the outcomes. */
void ms_check_outcomes(ms_arena *arena, const ms_outcome *run,
                       const ms_outcome *reference, const ms_check_tolerance *tolerance,
                       ms_check *out);

#endif
