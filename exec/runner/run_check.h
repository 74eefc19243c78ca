/* Compares two runs of one model on the same tokens: a sharded run and its unsharded
 * reference. */
#ifndef MS_EXEC_RUNNER_RUN_CHECK_H
#define MS_EXEC_RUNNER_RUN_CHECK_H

#include "exec/runner/runner.h"

/* Tolerances of relative differences. For a loss: |difference| over the reference's loss;
 * for a tensor: the largest |difference| of an element over the largest |value| of the
 * reference. Updated weights in fp32 are reported but have no tolerance: AdamW divides by
 * the root of the second moment, so rounding of a gradient near 0 moves a weight by a
 * whole step. */
typedef struct ms_run_check_tolerance {
    /* INFINITY: differences are reported, not checked */
    double first_loss, later_loss, gradient, weight;
} ms_run_check_tolerance;
/* Tolerances for a run's number type; INFINITY: none. `other_kernels`: the run is on a
 * GPU and the reference on a CPU, which sums in another order and with more digits, in
 * fp32 with initial weights rounded to bf16 for bf16 and fp8. Rounding errors grow with
 * the square root of their number: bf16 models of four layers stay within 1.7e-2 with
 * values as in training. fp8 losses 5e-2: the effect of rounding to e4m3 on logits
 * (docs/formulas 12.10); single elements of its gradients have no bound. */
ms_run_check_tolerance ms_run_check_tolerance_of(ms_real_type type, bool other_kernels);

/* Among gradients or weights, the tensor with the largest relative difference. */
typedef struct ms_run_check_worst {
    const char *name; /* tensor's name; NULL if nothing was compared */
    /* largest relative difference; NaN if the tensor has a NaN; INFINITY if it is
     * missing, has another shape, or is not 0 where the reference is 0 */
    double relative;
    int num_tensors;
} ms_run_check_worst;

typedef struct ms_run_check {
    ms_run_check_tolerance tolerance;
    long num_steps;
    /* largest relative differences; later_loss is 0 in a run of one step */
    double first_loss, later_loss;
    long worst_step;              /* step with the worst later_loss, counted from 1 */
    ms_run_check_worst gradients; /* gradients of the first step */
    ms_run_check_worst weights;   /* weights after the last step */
    bool passes;
    const char *failure; /* reason in one sentence; NULL if the check passes */
} ms_run_check;

/* Compares the losses of all steps and the tensors that both outcomes have. Texts live in
 * the arena or in the outcomes. */
void ms_run_check_outcomes(ms_arena *arena, const ms_outcome *run,
                           const ms_outcome *reference,
                           const ms_run_check_tolerance *tolerance, ms_run_check *out);

#endif
