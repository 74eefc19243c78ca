/* Folder exec/lower: nodes that communicate, for all backends; no schedule, no kernels.
 *
 * Executes a node by transfers and kernels; returns once compute waits for the last
 * transfer and workspace is released. Backends that only simulate pack nothing: a node
 * that communicates is one transfer of predicted duration, any other does nothing. */
#ifndef MS_EXEC_LOWER_LOWER_H
#define MS_EXEC_LOWER_LOWER_H

#include "exec/core/rank.h"

/* REDISTRIBUTE along any dim: all-gather, reduce-scatter, all-reduce, all-to-all (S(i) to
 * S(j), strided shards too), local slice and divide. Sharded dims are split evenly. A
 * group has equally many rows, except ranks that share experts (etp): each holds the rows
 * that it received, or all rows ordered by (expert, rank, source, source row). */
ms_status ms_lower_redistribute(ms_rank *rank, const ms_op_call *call);

/* Counts the rows that each rank sends to each expert, from this rank's `choice` of
 * experts (batch, sequence, k), and exchanges the counts in the ep group. The result is
 * in `arena`; backends that only simulate give all experts equally many rows. */
ms_status ms_lower_route(ms_rank *rank, ms_arena *arena, const ms_op_call *call,
                         ms_routing **out);
/* EXCHANGE sends rows to their experts' ranks, sorted by (expert, source, source row). */
ms_status ms_lower_exchange(ms_rank *rank, const ms_op_call *call);

/* Executes ATTENTION(_GRAD) as a ring over cp: blocks of keys and values travel to the
 * next rank, overlapped by attention to the current block; in backward their gradients
 * travel with them and one hop more. Buffers count as activations (ms_ring_buffer_bytes);
 * the program must have the run's element size. Scores of unfused attention are
 * recomputed, not saved. Backends that only simulate send nothing. */
ms_status ms_lower_ring(ms_rank *rank, const ms_op_call *call);

/* Whether a node is executed by ms_lower (transfers) instead of a single kernel. */
bool ms_is_lowered(const ms_program *program, const ms_node *node);
ms_status ms_lower(ms_rank *rank, const ms_op_call *call);

#endif
