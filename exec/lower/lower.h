/* Lowerings execute operations that communicate, by transfers and kernels; one file each
 * (exec/lower/lower_*.c). They return once compute waits for the last transfer and their
 * workspace is released. Failures are those of the backend. Without values nothing is
 * packed: a node that communicates is one transfer with its predicted duration, any other
 * node is nothing. */
#ifndef MS_EXEC_LOWER_LOWER_H
#define MS_EXEC_LOWER_LOWER_H

#include "exec/core/rank.h"

/* REDISTRIBUTE along any dim: all-gather, reduce-scatter, all-reduce, all-to-all (S(i) to
 * S(j), strided shards too), local slice and divide. Sharded dims are split evenly. All
 * ranks of the group have equally many rows, which are not split, except where etp ranks
 * share experts: each then holds the rows that it received, or all rows ordered by
 * (expert, rank, source, source row). */
ms_status ms_lower_redistribute(ms_rank *rank, const ms_op_call *call);

/* Determines, before a forward dispatch, how many rows each rank sends to each expert,
 * from `choice` [b s k] of this rank; counts are exchanged within the ep group. The
 * result lives in `arena`. Without values every expert gets equally many rows. */
ms_status ms_lower_route(ms_rank *rank, ms_arena *arena, const ms_op_call *call,
                         ms_routing **out);
/* EXCHANGE: rows ordered by expert become rows of this rank's experts, ordered by
 * (expert, source, source row); `inverse` is the way back. */
ms_status ms_lower_exchange(ms_rank *rank, const ms_op_call *call);

/* ATTENTION and ATTENTION_GRAD as a ring over the cp ranks: blocks of keys and values
 * travel to the next rank, overlapped by attention to the current block. In backward
 * the blocks' gradients travel with them and take one hop more. Buffers count as
 * activations (ms_ring_buffer_bytes); the program must have the element size of the
 * run. Scores saved by unfused attention are not written, since backward recomputes
 * them. Without values the attention and its buffers remain, but no transfer. */
ms_status ms_lower_ring(ms_rank *rank, const ms_op_call *call);

/* Whether a node is executed by a lowering instead of a single kernel. */
bool ms_is_lowered(const ms_program *program, const ms_node *node);
ms_status ms_lower(ms_rank *rank, const ms_op_call *call);

#endif
