/* Updates of weights by the optimizers of a plan, in double precision on the host. AdamW
 * on moments of the run's own type has kernels instead (ms_array_ops.adamw). */
#ifndef MS_EXEC_PARAMS_OPTIMIZER_H
#define MS_EXEC_PARAMS_OPTIMIZER_H

#include "costmodel/plan/plan.h"
#include "exec/core/array_args.h"

/* Consecutive elements of a weight, their clipped gradients and their moments; moments
 * that the optimizer does not have are NULL. */
typedef struct ms_elements {
    long count;
    double *weight, *gradient, *moments[2];
} ms_elements;

/* One step of an element-wise optimizer, of which `how` has the constants. AdamW also with
 * moments in 8 bits (MS_OPTIMIZER_ADAM_8BIT): Loshchilov and Hutter 2019, algorithm 2. SGD
 * with momentum beta1: torch/optim/sgd.py without dampening, the decay being part of the
 * gradient. Lion: Chen et al. 2023, algorithm 2. Muon: the momentum beta1 alone, and in
 * place of the gradient the direction (1 - beta1) g + beta1 m (Nesterov's, as in
 * torch/optim/_muon.py), which is to be orthogonalized; weights stay. */
void ms_optimizer_step(ms_optimizer optimizer, const ms_adamw *how,
                       const ms_elements *elements);

/* ---- moments in 8 bits ---- */

/* Values that share an fp32 scale, their largest magnitude (Dettmers et al. 2022, section
 * 2.1; ms_storage_bytes). */
#define MS_STATE_BLOCK 256

/* The dynamic tree of Dettmers 2016 (arXiv 1511.04561) as Dettmers et al. 2022 use it: 256
 * numbers from -1 (signed) or 0 to 1 in ascending order, denser towards 0; seven decades
 * with 1, 2, 4, ... 64 (unsigned: 2, ... 128) means of equal parts of [0.1, 1]. */
void ms_dynamic_tree(bool is_signed, double out[256]);
/* Writes `count` values as codes, the nearest number each, with a scale per block of
 * MS_STATE_BLOCK; the last block may be shorter. */
void ms_codes_write(bool is_signed, const double *values, long count,
                    unsigned char *codes, float *scales);
void ms_codes_read(bool is_signed, const unsigned char *codes, const float *scales,
                   long count, double *values);

#endif
