/* A plan's choices that change numbers of its stack: types, optimizer, offload, host. */
#ifndef MS_COSTMODEL_PLAN_STACK_CHOICES_H
#define MS_COSTMODEL_PLAN_STACK_CHOICES_H

#include "costmodel/plan/plan.h"
#include "costmodel/profile/stack.h"

/* The stack as a plan runs it: adapted to the compute type (ms_stack_adapt), with the
 * plan's own choices in place of the stack's numbers. A stack that has choices keeps
 * them. */
ms_stack ms_stack_of_plan(const ms_stack *stack, const ms_plan *plan);

/* Puts the types that a plan states in place of the stack's, and changes optimizer_bytes
 * and accumulate_bytes by the traffic that they save or add. Consequences, where the plan
 * does not state otherwise:
 * - fp32 parameters need no master copy; nor do parameters in the type of the states
 * - without a master copy, gradients and moments have the type of narrower parameters, as
 *   PyTorch makes them (torch.optim, zeros_like(param))
 * - reductions have the type of the gradient sums, if the stack's have
 * - copies of gradients beside a 32-bit sum go with that sum
 * - fp8 parameters are gathered so. */
void ms_stack_set_types(ms_stack *stack, const ms_plan *plan);

/* Bytes of a stored value, with its share of scales; `otherwise` for MS_STORE_DEFAULT. An
 * 8-bit integer shares an fp32 scale with 255 others (bitsandbytes, functional.py,
 * blocksize 256); FP8 moments have one scale per tensor (Transformer Engine,
 * optimizers/fused_adam.py), which counts as none. */
double ms_storage_bytes(ms_storage type, double otherwise);

/* Sets the scaling of the plan's recipe; without a scale per tensor, stacks that cast once
 * by tensor only cast for each GEMM. */
void ms_stack_set_recipe(ms_stack *stack, const ms_plan *plan);

/* MS_EINPUT: the recipe has another compute type, or the device lacks it; parameters or
 * gathers in fp8 with a wider compute type. */
ms_status ms_plan_check_types(ms_ctx *cx, const ms_plan *plan, const ms_device *device);

/* States of an optimizer. Sources: Loshchilov and Hutter 2019 (arXiv 1711.05101);
 * Dettmers et al. 2022 (arXiv 2110.02861); Shazeer and Stern 2018 (arXiv 1804.04235),
 * algorithm 4; torch.optim.SGD with momentum; Chen et al. 2023 (arXiv 2302.06675),
 * algorithm 2; Jordan et al. 2024 (kellerjordan.github.io/posts/muon). */
typedef struct ms_optimizer_states {
    int num_moments;        /* per parameter of a matrix */
    int num_vector_moments; /* per parameter that is in no matrix */
    double factored_bytes;  /* per row and per column of a matrix, at least */
    double gradient_passes; /* readings of the gradient besides the first one */
    int orthogonal_iterations;
} ms_optimizer_states;
extern const ms_optimizer_states ms_states_of_optimizer[MS_NUM_OPTIMIZERS];

/* Whether the optimizer's moments are in blocks of 8-bit integers (MS_STORE_INT8). */
bool ms_plan_has_moment_blocks(const ms_plan *plan);

/* Puts the states and the traffic of the plan's optimizer in place of AdamW's. */
void ms_stack_set_optimizer(ms_stack *stack, const ms_plan *plan);

/* MS_EINPUT: the plan's dispatcher of tokens has a name, but no price. */
ms_status ms_plan_check_dispatcher(ms_ctx *cx, const ms_plan *plan);

/* Puts how the plan's kernels are launched in place of the stack's way. Where layers are
 * compiled unlike the stack's, or not compiled, the numbers that depend on it are those of
 * its counterpart. */
void ms_stack_set_host(ms_stack *stack, const ms_plan *plan);

/* MS_EINPUT: the stack has no counterpart for the plan's `compile`, or no CUDA graphs; or
 * the whole step is to be one graph though the host waits for the shapes of experts. */
ms_status ms_plan_check_host(ms_ctx *cx, const ms_plan *plan, const ms_stack *stack,
                             const ms_model *model);

/* HBM bytes per parameter of an update that reads the gradient, and reads and writes
 * master copy and moments; the parameter is written, and read too if no master is. */
double ms_update_traffic_bytes(const ms_stack *stack);

/* Elements in 8 or 4 bits (ms_quantized_bits) that share an fp32 scale. Source: DeepSpeed's
 * CUDAQuantizer forms groups of at most 8000 elements and calls 4k best (from memory). */
#define MS_QUANTISED_BLOCK 4096

#endif
