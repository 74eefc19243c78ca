/* Token rows of experts that several ranks share (etp). Each rank gathers all ranks'
 * rows; a reduce-scatter returns its own, summed. Blocks are padded to the longest. */
#include "exec/lower/lower_priv.h"

#include <string.h>

static bool splits_rows(ms_placement at)
{
    return at.kind == MS_SHARD && at.dim == MS_DIM_ROWS;
}

bool ms_lower_shares_rows(const ms_op_call *call)
{
    return splits_rows(call->node->from) || splits_rows(call->node->to);
}

static long rows_of_sharer(const ms_routing *routing, long sharer)
{
    long rows = 0;
    for (long e = 0; e < routing->num_experts; e++)
        rows += routing->shared[sharer * routing->num_experts + e];
    return rows;
}

static long largest_num_rows(const ms_routing *routing)
{
    long most = 0;
    for (long i = 0; i < routing->num_sharers; i++)
        most = rows_of_sharer(routing, i) > most ? rows_of_sharer(routing, i) : most;
    return most;
}

/* Blocks of rows of equal size, one per rank; rows of a block are ordered by expert. */
typedef struct row_blocks {
    char *first;
    size_t bytes, row_bytes;
} row_blocks;

/* Copies rows from one block per rank to the order (expert, rank), or back. */
static void reorder_shared_rows(const ms_rank *rank, const ms_routing *routing,
                                row_blocks blocks, char *sorted, bool sort)
{
    size_t *done = MS_NEW_ARRAY(rank->scratch, routing->num_sharers, size_t);
    for (long e = 0; e < routing->num_experts; e++) {
        for (long i = 0; i < routing->num_sharers; i++) {
            size_t bytes =
                (size_t)routing->shared[i * routing->num_experts + e] * blocks.row_bytes;
            char *block = blocks.first + (size_t)i * blocks.bytes + done[i];
            if (bytes > 0)
                rank->backend->arrays->copy(rank->device, sort ? sorted : block,
                                            sort ? block : sorted, bytes);
            done[i] += bytes;
            sorted += bytes;
        }
    }
}

/* Gathers or reduce-scatters rows; `memory`: this rank's block, then a block per rank. */
static ms_status move_shared_rows(ms_rank *rank, const ms_op_call *call,
                                  ms_transfer transfer, long block, char *memory)
{
    const ms_routing *routing = call->routing;
    const ms_array_ops *arrays = rank->backend->arrays;
    const ms_local *in = call->in[0];
    ms_local *out = call->out[0];
    row_blocks all = {.bytes = ms_lower_bytes(in, block),
                      .row_bytes = ms_lower_bytes(in, ms_local_last(in))};
    bool gathers = splits_rows(call->node->from);
    all.first = memory + all.bytes;
    transfer.kind = gathers ? MS_TRANSFER_ALL_GATHER : MS_TRANSFER_REDUCE_SCATTER;
    transfer.send = gathers ? memory : all.first;
    transfer.receive = gathers ? all.first : memory;
    transfer.count = block;
    if (gathers && in->count > 0)
        arrays->copy(rank->device, memory, in->data, ms_lower_bytes(in, in->count));
    if (!gathers)
        reorder_shared_rows(rank, routing, all, in->data, false);
    MS_TRY(ms_lower_carry_out(rank, &transfer));
    if (gathers)
        reorder_shared_rows(rank, routing, all, out->data, true);
    else if (out->count > 0)
        arrays->copy(rank->device, out->data, memory, ms_lower_bytes(out, out->count));
    return MS_OK;
}

ms_status ms_lower_share_rows(ms_rank *rank, const ms_op_call *call,
                              const ms_node_comm *comm)
{
    const ms_local *in = call->in[0];
    long block = largest_num_rows(call->routing) * ms_local_last(in);
    long num = block * (call->routing->num_sharers + 1);
    if (num == 0)
        return MS_OK;
    double bytes = (double)ms_lower_bytes(in, num);
    void *memory;
    MS_TRY(ms_rank_workspace(rank, bytes, &memory));
    /* padding beyond a rank's own rows is sent too */
    rank->backend->arrays->fill(rank->device, (ms_scalar)in->scalar, memory, 0.0, num);
    ms_status status =
        move_shared_rows(rank, call, ms_lower_transfer(call, comm), block, memory);
    ms_rank_release_workspace(rank, bytes, memory);
    return status;
}
