/* Compares two runs of one model on the same tokens: a sharded run and its unsharded
 * reference. */
#ifndef MS_EXEC_RUNNER_RUN_CHECK_H
#define MS_EXEC_RUNNER_RUN_CHECK_H

#include "exec/runner/runner.h"

/* Largest relative differences that pass. Of a loss: |difference| / |reference loss|. Of
 * a tensor: largest |difference| of an element / largest |value| in the reference.
 * Updated weights in fp32 have no tolerance: AdamW divides by the root of the second
 * moment, so that rounding of a gradient near 0 moves a weight by a whole learning-rate
 * step. */
typedef struct ms_run_check_tolerance {
    /* INFINITY: the difference is reported but passes whatever it is */
    double first_loss, later_loss, gradient, weight;
} ms_run_check_tolerance;
/* Tolerances for a run's number type and a model of `num_layers`. `other_kernels`: the run
 * is on a GPU, its reference on a CPU in fp32 (initial weights rounded to bf16 for bf16 and
 * fp8), with other orders of sums. bf16: gradients by the number of roundings
 * (docs/formulas 12.8), 2e-2 at least. fp8: losses within 5e-2, the effect of rounding
 * logits to e4m3 (docs/formulas 12.10); single elements of gradients have no bound. fp4:
 * 1e-1, since its numbers have two bits less; models of two layers stay within 6e-2 of
 * bf16. */
ms_run_check_tolerance ms_run_check_tolerance_of(ms_real_type type, bool other_kernels,
                                                 long num_layers);

/* The tensor, of all gradients or all weights, with the largest relative difference. */
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
    /* largest relative difference in the first step, and in all later ones (0 if none),
     * of losses of the model and of its modules of multi-token prediction */
    double first_loss, later_loss;
    long worst_step;              /* step with the worst later_loss, counted from 1 */
    ms_run_check_worst gradients; /* gradients of the first step */
    ms_run_check_worst weights;   /* weights after the last step */
    bool passes;
    const char *failure; /* reason in one sentence; NULL if the check passes */
} ms_run_check;

/* Compares the losses of all steps, of equally many modules, and those tensors that both outcomes contain. Texts
 * in `out` live in the arena or in the outcomes. */
void ms_run_check_outcomes(ms_arena *arena, const ms_outcome *run,
                           const ms_outcome *reference,
                           const ms_run_check_tolerance *tolerance, ms_run_check *out);

#endif
