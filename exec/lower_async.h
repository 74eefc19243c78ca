/* Asynchronous tensor parallelism: a gather along the sequence and the product that uses
 * it, or a product and the scatter of its sum, as a ring of chunks. The product of one
 * chunk runs while the next one travels (Wang et al. 2023, "Overlap communication with
 * dependent computation"). */
#ifndef MS_EXEC_LOWER_ASYNC_H
#define MS_EXEC_LOWER_ASYNC_H

#include "exec/rank.h"

/* Whether a node and the one after it run so under the plan: one is an EINSUM, the other
 * changes its operand or result over tp. */
bool ms_async_pair(const ms_program *program, int node, const ms_plan *plan);

/* Executes both nodes of a pair. Their results are what they are one after the other, but
 * for the order of sums over tp. */
ms_status ms_lower_async(ms_rank *rank, const ms_op_call *first,
                         const ms_op_call *second);

#endif
