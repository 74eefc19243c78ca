/* Seconds and saved bytes of GEMMs in fewer than 16 bits, whose operands are cast from 16
 * bits once, before they are gathered or sent. docs/formulas 2.1.1, 2.1.4. */
#ifndef MS_COSTMODEL_COST_CAST_H
#define MS_COSTMODEL_COST_CAST_H

#include "costmodel/cost/kernel_cost.h"
#include "costmodel/program/program.h"

/* Bytes per element of an operand in the compute type, with the scales of the plan's
 * recipe. */
double ms_cast_element_bytes(const ms_pricer *pricer);

/* Seconds of an EINSUM or GROUPED node with its casts; if the stack fuses_projections,
 * its share of the GEMM by the joined matrix. The output head multiplies in 16 bits:
 * Megatron-LM's output layer is no FP8 layer (ColumnParallelLinear), torchtitan filters
 * "output" (float8 filter_fqns). */
double ms_node_product_s(const ms_program *program, const ms_node *node,
                         const ms_pricer *pricer);

/* Whether one kernel runs all experts: gated MLPs in fewer than 16 bits, if the stack has
 * such kernels, the device computes FP4, and a domain has more than 8 GPUs. */
bool ms_fuses_experts(const ms_program *program, const ms_pricer *pricer);

/* Bytes saved for backward / stored bytes of a forward result. 0 for experts' rows that
 * only the gradient of routing weights would read, if the stack weighs_in_experts, and 1
 * more for experts' activations that a separate operation then weights. If it
 * keeps_casts: the cast counts if GEMMs read it for weight gradients (also through a
 * repeated gather), and the tensor itself if other nodes read it. With keeps_casts_alone
 * only the cast, which gradients of activation functions then read too (DeepSeek-V3,
 * arXiv:2412.19437, section 3.3.2). Otherwise 1. Transformer Engine's Linear and
 * GroupedLinear save the cast input (from memory). */
double ms_saved_frac(const ms_program *program, int tensor, const ms_pricer *pricer);

/* Whether a node sums input gradients of projections with one joined matrix: the GEMM by
 * that matrix makes the sum itself. */
bool ms_node_sums_joined(const ms_program *program, const ms_node *node);

/* ms_node_communicates with the size that the stack sends: less if it casts operands
 * before gathers over tp, or sends a token once to a rank with several of its experts. */
bool ms_node_sends(const ms_program *program, const ms_node *node,
                   const ms_pricer *pricer, ms_node_comm *out);

#endif
