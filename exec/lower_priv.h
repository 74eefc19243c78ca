/* What the lowerings share. */
#ifndef MS_EXEC_LOWER_PRIV_H
#define MS_EXEC_LOWER_PRIV_H

#include "exec/lower.h"

/* The ranks with which a node's rank communicates, itself among them. */
const ms_members *ms_lower_members(const ms_rank *rank, const ms_node_comm *comm);

/* A transfer of the node, with group, stream, name and what is predicted of it; kind and
 * buffers are left to the caller. */
ms_transfer ms_lower_transfer(const ms_op_call *call, const ms_node_comm *comm);

/* Starts it after all that compute was given so far, and lets compute wait for it. */
ms_status ms_lower_carry_out(ms_rank *rank, const ms_transfer *transfer);

/* One hop around a ring: a send to the next member and a receive from the one before. */
typedef struct ms_hop {
    bool moves;
    ms_event sent, received;
} ms_hop;

/* Both run beside compute until the hop is ended; `send` and `receive` must stay as they
 * are. All members give the same tag. */
ms_status ms_lower_start_hop(ms_rank *rank, const ms_members *members,
                             const ms_transfer *transfer, ms_hop *out);
/* Nothing for a hop that was not started. */
ms_status ms_lower_end_hop(ms_rank *rank, const ms_hop *hop);

/* Whether rows that differ between the ranks of the group are gathered, or sums of them
 * scattered: those of experts that the ranks share. */
bool ms_lower_shares_rows(const ms_op_call *call);
/* The rows that each rank got become those of all, ordered by (expert, rank, the rank's
 * order); or back, as sums. */
ms_status ms_lower_share_rows(ms_rank *rank, const ms_op_call *call,
                              const ms_node_comm *comm);

/* Element of `whole` with which the box begins. */
long ms_lower_first_of(const ms_local *box, const ms_local *whole);
/* Copies a box of a tensor from one local part of it to another; both contain the box;
 * elements are as those of `from`. */
void ms_lower_copy_box(const ms_rank *rank, const ms_local *box, const ms_local *from,
                       const ms_local *to);
/* Elements of an operand as bytes. */
static inline size_t ms_lower_bytes(const ms_local *x, long count)
{
    return (size_t)count * ms_scalar_bytes((ms_scalar)x->scalar);
}

#endif
