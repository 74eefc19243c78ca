/* Folder exec/lower: executes nodes that communicate, on any backend; no schedule.
 *
 * A node becomes transfers and kernels; its function returns once the compute stream is
 * set to wait for the last transfer and workspace is released. In backends that only
 * simulate, such a node is one transfer of predicted duration, others do nothing. */
#ifndef MS_EXEC_LOWER_LOWER_H
#define MS_EXEC_LOWER_LOWER_H

#include "exec/core/rank.h"

/* Executes a REDISTRIBUTE: all-gather, reduce-scatter, all-reduce, all-to-all (shards of
 * dim i to shards of j, also strided) or, locally, slice or division. Sharded dims are
 * split evenly; a group's ranks hold equally many expert rows. Only ranks that share
 * experts (etp) hold the rows each received, or all by (expert, rank, source, row). */
ms_status ms_lower_redistribute(ms_rank *rank, const ms_op_call *call);

/* Makes the routing of MoE rows from `choice` (batch, sequence, k), the experts chosen
 * for this rank's tokens: counts the rows for each expert and exchanges the counts in the
 * ep group. *out lives in `arena`. In simulation all experts get equally many rows. */
ms_status ms_lower_route(ms_rank *rank, ms_arena *arena, const ms_op_call *call,
                         ms_routing **out);
/* EXCHANGE sends rows to their experts' ranks, sorted by (expert, source, source row). */
ms_status ms_lower_exchange(ms_rank *rank, const ms_op_call *call);

/* Whether a rank's tokens reach experts by an all-gather: it has a buffer for them, and
 * there are several ranks of ep. */
bool ms_lower_gathers(const ms_rank *rank, const ms_program *program);
/* Executes EXCHANGE and (UN)PERMUTE(_GRAD) so; *done: it is such a node. In
 * rank->tokens_buffer other nodes find nothing. */
ms_status ms_lower_gathered(ms_rank *rank, const ms_op_call *call, bool *done);

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
