/* Asynchronous tensor parallelism: a matrix product and its all-gather or reduce-scatter
 * along the sequence as a ring; one chunk is multiplied while the next travels (Wang et
 * al. 2023, "Overlap communication with dependent computation"). */
#ifndef MS_EXEC_LOWER_LOWER_ASYNC_H
#define MS_EXEC_LOWER_LOWER_ASYNC_H

#include "exec/core/rank.h"

/* Whether nodes `node` and `node` + 1 are an EINSUM and its redistribution over tp. */
bool ms_async_pair(const ms_program *program, int node, const ms_plan *plan);

/* Executes EINSUM and redistribution in overlapped chunks; tp sums change their order. */
ms_status ms_lower_async(ms_rank *rank, const ms_op_call *first,
                         const ms_op_call *second);

#endif
