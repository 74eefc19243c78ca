/* Casts of matrix products in fewer than 16 bits: operands are cast from 16 bits once,
 * where they are smallest, and travel cast. docs/formulas 2.1.1. */
#ifndef MS_COSTMODEL_COST_CAST_H
#define MS_COSTMODEL_COST_CAST_H

#include "costmodel/cost/kernel_cost.h"
#include "costmodel/program/program.h"

/* Seconds of an EINSUM or GROUPED node with its casts; if the stack fuses_projections,
 * its share of the product of the joined matrix. The head multiplies in 16 bits:
 * Megatron-LM's output layer is a plain ColumnParallelLinear, torchtitan filters "output"
 * (float8 filter_fqns). */
double ms_node_product_s(const ms_program *program, const ms_node *node,
                         const ms_pricer *pricer);

/* Whether one kernel runs all experts: gated MLPs in fewer than 16 bits, if the stack has
 * such kernels and the device scales blocks of numbers, as devices with fp4 do. */
bool ms_fuses_experts(const ms_program *program, const ms_pricer *pricer);

/* Saved bytes of a forward result over its bytes as stored. If the stack
 * weighs_in_experts, 0 for expert rows that only the gradient of the routing weights
 * would read. If it keeps_casts, the cast for products whose gradients of weights read it
 * (through a repeated gather, too), and the tensor itself for other readers; with
 * keeps_casts_alone the cast for all, also for gradients of activation functions
 * (DeepSeek-V3, arXiv:2412.19437, section 3.3.2). Otherwise 1. Transformer Engine's
 * Linear and GroupedLinear save the cast input (from memory). */
double ms_saved_frac(const ms_program *program, int tensor, const ms_pricer *pricer);

/* Whether a node adds gradients that a joined matrix (fuses_projections) sums itself. */
bool ms_node_sums_joined(const ms_program *program, const ms_node *node);

/* ms_node_communicates with the bytes sent by a stack that casts operands before gathers
 * over tp, or that sends a token once to a rank with several of its experts. */
bool ms_node_sends(const ms_program *program, const ms_node *node,
                   const ms_pricer *pricer, ms_node_comm *out);

#endif
