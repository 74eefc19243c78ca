/* Helpers shared by the files of exec/lower. */
#ifndef MS_EXEC_LOWER_LOWER_PRIV_H
#define MS_EXEC_LOWER_LOWER_PRIV_H

#include "exec/lower/lower.h"

/* The ranks with which a rank communicates in a node, including itself. */
const ms_members *ms_lower_members(const ms_rank *rank, const ms_node_comm *comm);

/* A transfer with a node's group, stream, name and prediction; callers add the rest. */
ms_transfer ms_lower_transfer(const ms_op_call *call, const ms_node_comm *comm);

/* Starts a transfer after all compute submitted so far, and makes compute wait for it. */
ms_status ms_lower_carry_out(ms_rank *rank, const ms_transfer *transfer);

/* A hop in a ring of ranks: a send to the next one, a receive from the previous one. */
typedef struct ms_hop {
    bool moves;
    ms_event sent, received;
} ms_hop;

/* Starts the hop's send and receive, which overlap compute and use the buffers until
 * ms_lower_end_hop. All members pass the same tag. */
ms_status ms_lower_start_hop(ms_rank *rank, const ms_members *members,
                             const ms_transfer *transfer, ms_hop *out);
/* Makes compute wait for the hop, if it was started. */
ms_status ms_lower_end_hop(ms_rank *rank, const ms_hop *hop);

/* Sets routing->choice, and adds the rows that each rank sends to `counts`. */
ms_status ms_lower_gather_choice(ms_rank *rank, ms_arena *arena, const ms_op_call *call,
                                 ms_routing *routing, long *counts);

/* Whether the node gathers or reduce-scatters rows of experts that ranks share (etp). */
bool ms_lower_shares_rows(const ms_op_call *call);
/* Gathers etp ranks' rows, sorted by (expert, rank), or reduce-scatters their sums. */
ms_status ms_lower_share_rows(ms_rank *rank, const ms_op_call *call,
                              const ms_node_comm *comm);

/* Index of the first element of `box`, a part of a tensor, within the shard `whole`. */
long ms_lower_first_of(const ms_local *box, const ms_local *whole);
/* Copies a part `box` of a tensor between shards that contain it, both of one type. */
void ms_lower_copy_box(const ms_rank *rank, const ms_local *box, const ms_local *from,
                       const ms_local *to);
static inline size_t ms_lower_bytes(const ms_local *x, long count)
{
    return (size_t)count * ms_scalar_bytes((ms_scalar)x->scalar);
}

#endif
