/* What products of fewer than 16 bits do beside multiplying: their operands are cast from
 * 16 bits once, where they are smallest, and travel so. docs/formulas 2.1.1. */
#ifndef MS_COSTMODEL_COST_CAST_H
#define MS_COSTMODEL_COST_CAST_H

#include "costmodel/cost/kernel_cost.h"
#include "costmodel/program/program.h"

/* Seconds of an EINSUM or GROUPED node with the casts that it needs; where the stack
 * fuses_projections, its share of the product of the joined matrix. Products of the head
 * stay in 16 bits: Transformer Engine has none there (Megatron-LM's output layer is a
 * plain ColumnParallelLinear), torchtitan filters "output" (float8 filter_fqns). */
double ms_node_product_s(const ms_program *program, const ms_node *node,
                         const ms_pricer *pricer);

/* Whether the experts are kernels for all of them together: of gated MLPs in fewer than
 * 16 bits, where the stack has such kernels and the device's units scale blocks of
 * numbers, as those for fp4 do. */
bool ms_fuses_experts(const ms_program *program, const ms_pricer *pricer);

/* Bytes that are kept of a forward result over the bytes as it is stored. Where the stack
 * weighs_in_experts: none of the rows that experts gave, which nothing but the gradient of
 * the routing weights would read. Where it keeps_casts: its cast for products whose
 * gradients of weights read it (through a repeated gather, too), and itself for all that
 * reads it otherwise; with keeps_casts_alone the cast for all, and for gradients of
 * activation functions (DeepSeek-V3, arXiv:2412.19437, section 3.3.2). Otherwise 1.
 * Transformer Engine, Linear and GroupedLinear (from memory): they save their input as it
 * was cast. */
double ms_saved_frac(const ms_program *program, int tensor, const ms_pricer *pricer);

/* Whether a node adds gradients that the product of a joined matrix adds up itself: none,
 * where the stack fuses projections. */
bool ms_node_sums_joined(const ms_program *program, const ms_node *node);

/* As ms_node_communicates, with the bytes that are sent where the stack casts operands
 * before it gathers them over tp, and where it sends a token to each rank once, however
 * many of its experts are there. */
bool ms_node_sends(const ms_program *program, const ms_node *node,
                   const ms_pricer *pricer, ms_node_comm *out);

#endif
