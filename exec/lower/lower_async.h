/* Asynchronous tensor parallelism: an all-gather along the sequence with the matrix
 * product that uses it, or a matrix product with the reduce-scatter of its sum, as a ring
 * of chunks. One chunk is multiplied while the next one travels (Wang et al. 2023,
 * "Overlap communication with dependent computation"). */
#ifndef MS_EXEC_LOWER_LOWER_ASYNC_H
#define MS_EXEC_LOWER_LOWER_ASYNC_H

#include "exec/core/rank.h"

/* Whether a node and the next one are executed as such a ring under the plan: one is an
 * EINSUM, the other redistributes its operand or result over tp. */
bool ms_async_pair(const ms_program *program, int node, const ms_plan *plan);

/* Executes both nodes of a pair. Results equal those of separate execution except for the
 * order of sums over tp. */
ms_status ms_lower_async(ms_rank *rank, const ms_op_call *first,
                         const ms_op_call *second);

#endif
