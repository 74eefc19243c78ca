/* Operands of layers' products as fp8 and fp4 runs have them. */
#ifndef MS_EXEC_CPU_QUANTIZED_PRODUCT_H
#define MS_EXEC_CPU_QUANTIZED_PRODUCT_H

#include "exec/core/op_call.h"

/* Rounds the operands, fp32 arrays that the call may change, by call->recipe (ms_quantize),
 * if the operation is a layer's product (ms_is_layer_product) and has a recipe. Matrices
 * are those of ms_einsum_as_product, of GROUPED one per expert: each product that reads an
 * operand rounds it along its own sum. */
void ms_quantize_operands(const ms_op_call *call);

#endif
