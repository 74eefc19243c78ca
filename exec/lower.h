/* Lowerings: how operations that communicate are carried out by transfers and kernels.
 * One small file each (exec/lower_*.c). They return when compute has waited for the last
 * transfer; memory of their own is workspace, let go before. Failures are those of the
 * backend. Without values nothing is packed: a node that communicates is one transfer
 * with what is predicted of it, any other is nothing. */
#ifndef MS_EXEC_LOWER_H
#define MS_EXEC_LOWER_H

#include "exec/rank.h"

/* REDISTRIBUTE: all-gather, reduce-scatter, all-reduce, all-to-all (S(i) to S(j), strided
 * shards too), local slice and divide, along any dim. Sharded dims are split evenly. Rows
 * are as many on all ranks of the group and not what is split, but where ranks share
 * experts: then each holds those that it got, or all of them, ordered by (expert, rank,
 * source, source row). */
ms_status ms_lower_redistribute(ms_rank *rank, const ms_op_call *call);

/* Before a dispatch, forward: how many rows go where. From `choice` [b s k] of this rank;
 * counts are exchanged within the ep group. The result lives in `arena`. Without values:
 * every expert gets as many. */
ms_status ms_lower_route(ms_rank *rank, ms_arena *arena, const ms_op_call *call,
                         ms_routing **out);
/* EXCHANGE, both ways: rows ordered by expert become rows of this rank's experts, ordered
 * by (expert, source, source row); `inverse`: back. */
ms_status ms_lower_exchange(ms_rank *rank, const ms_op_call *call);

/* ATTENTION and ATTENTION_GRAD whose node is a ring over more than one cp rank: blocks
 * travel to the next rank beside the attention to the block that is there; in backward
 * their gradients travel with them and take one hop more. The buffers are counted as
 * activations, as ms_ring_buffer_bytes has them; elements of the program are as long as
 * those of the run. Scores that unfused attention keeps are not written: the backward
 * makes them again. Without values: the attention and its buffers, but no transfer. */
ms_status ms_lower_ring(ms_rank *rank, const ms_op_call *call);

/* Whether a node is carried out by one of these, and not by a kernel alone. */
bool ms_is_lowered(const ms_program *program, const ms_node *node);
ms_status ms_lower(ms_rank *rank, const ms_op_call *call);

#endif
