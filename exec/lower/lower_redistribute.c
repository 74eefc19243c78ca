/* Redistribution of a tensor: a rank cuts its shard into a block per receiver, transfers
 * them and copies received ones into its new shard, or receives them in place. */
#include "exec/lower/lower_priv.h"

#include <assert.h>
#include <string.h>

/* Blocks of one local tensor, in the order of the members that send or receive them. */
typedef struct blocks {
    const ms_local *whole;
    int num;
    ms_local *box;
    long *counts, count;
    bool in_place; /* blocks lie one after the other in `whole` */
    double bytes;  /* size of `memory`; 0 if in_place */
    void *memory;
} blocks;

static ms_local box_intersection(const ms_local *a, const ms_local *b)
{
    ms_local box = {.num_dims = a->num_dims, .count = 1};
    for (int i = 0; i < a->num_dims; i++) {
        long a_end = a->start[i] + a->shape[i], b_end = b->start[i] + b->shape[i];
        long end = a_end < b_end ? a_end : b_end;
        box.start[i] = a->start[i] > b->start[i] ? a->start[i] : b->start[i];
        box.shape[i] = end > box.start[i] ? end - box.start[i] : 0;
        box.count *= box.shape[i];
    }
    return box;
}

/* Cuts `whole` along members' shards; in place if the blocks lie one after the other. */
static blocks cut_blocks(const ms_rank *rank, const ms_local *whole,
                         const ms_local *shards, int num)
{
    blocks b = {.whole = whole,
                .num = num,
                .box = MS_NEW_ARRAY(rank->scratch, num, ms_local),
                .counts = MS_NEW_ARRAY(rank->scratch, num, long),
                .in_place = true};
    for (int i = 0; i < num; i++) {
        b.box[i] = box_intersection(whole, &shards[i]);
        b.in_place = b.in_place && ms_lower_first_of(&b.box[i], whole) == b.count;
        b.counts[i] = b.box[i].count;
        b.count += b.counts[i];
    }
    b.memory = whole->data;
    b.bytes = b.in_place ? 0.0 : (double)ms_lower_bytes(whole, b.count);
    return b;
}

static ms_status open_blocks(ms_rank *rank, blocks *b)
{
    return b->in_place ? MS_OK : ms_rank_workspace(rank, b->bytes, &b->memory);
}

static void close_blocks(ms_rank *rank, blocks *b)
{
    if (!b->in_place)
        ms_rank_release_workspace(rank, b->bytes, b->memory);
}

/* Packs blocks of a tensor into separate memory for a transfer, or unpacks them. */
static void copy_blocks(const ms_rank *rank, const blocks *b, bool pack)
{
    char *memory = b->memory;
    for (int i = 0; i < b->num && !b->in_place; i++) {
        ms_local block = b->box[i];
        block.data = memory;
        block.scalar = b->whole->scalar;
        ms_lower_copy_box(rank, &block, pack ? b->whole : &block,
                          pack ? &block : b->whole);
        memory += ms_lower_bytes(&block, block.count);
    }
}

/* Sets a shard's number of expert rows, which is equal on all ranks of the group. */
static void set_rows(const ms_op_call *call, ms_local *local)
{
    const char *dims = call->program->tensors[call->node->in[0]].dims;
    const char *where = strchr(dims, MS_DIM_ROWS);
    if (where == NULL)
        return;
    local->start[where - dims] = 0;
    local->shape[where - dims] = call->in[0]->shape[where - dims];
}

/* For each member of the group, the shard of the tensor that it holds. */
static ms_local *shards_of_members(const ms_rank *rank, const ms_op_call *call,
                                   const ms_members *members, int tensor)
{
    ms_local *shards = MS_NEW_ARRAY(rank->scratch, members->size, ms_local);
    for (int i = 0; i < members->size; i++) {
        shards[i] = ms_world_local(rank->world, call->program, tensor,
                                   &rank->world->places[members->ranks[i]]);
        set_rows(call, &shards[i]);
    }
    return shards;
}

/* Takes a slice, or divides by the number of ranks (partial sums); no transfer. */
static void change_locally(const ms_rank *rank, const ms_op_call *call)
{
    const ms_node *node = call->node;
    const ms_local *in = call->in[0];
    ms_local *out = call->out[0];
    ms_local box = box_intersection(in, out);
    assert(box.count == out->count);
    if (out->data != in->data)
        ms_lower_copy_box(rank, &box, in, out);
    int mesh = call->program->tensors[node->in[0]].mesh;
    long num_ranks = call->program->mesh_size[mesh][node->axis];
    if (node->to.kind == MS_PARTIAL_SUM && num_ranks > 1)
        rank->backend->arrays->scale(rank->device, (ms_scalar)out->scalar, out->data,
                                     1.0 / (double)num_ranks, out->count);
}

static ms_status all_reduce(ms_rank *rank, const ms_op_call *call, ms_transfer transfer)
{
    assert(call->in[0]->count == call->out[0]->count);
    transfer.kind = MS_TRANSFER_ALL_REDUCE;
    transfer.maximum = call->node->from.kind == MS_PARTIAL_MAX;
    transfer.send = call->in[0]->data;
    transfer.receive = call->out[0]->data;
    transfer.count = call->in[0]->count;
    return ms_lower_carry_out(rank, &transfer);
}

static ms_status move_blocks(ms_rank *rank, ms_transfer transfer, blocks *send,
                             blocks *receive)
{
    copy_blocks(rank, send, true);
    transfer.send = send->memory;
    transfer.receive = receive->memory;
    transfer.send_counts = send->counts;
    transfer.receive_counts = receive->counts;
    transfer.count =
        transfer.kind == MS_TRANSFER_ALL_GATHER ? send->count : receive->count;
    MS_TRY(ms_lower_carry_out(rank, &transfer));
    copy_blocks(rank, receive, false);
    return MS_OK;
}

/* Transfers one block from and to each member; but an all-gather sends the same single
 * block to all, and a reduce-scatter receives a single reduced block. */
static ms_status exchange_blocks(ms_rank *rank, const ms_op_call *call,
                                 const ms_members *members, ms_transfer transfer)
{
    const ms_local *in = call->in[0], *out = call->out[0];
    bool gathers = transfer.kind == MS_TRANSFER_ALL_GATHER,
         reduces = transfer.kind == MS_TRANSFER_REDUCE_SCATTER;
    int n = members->size;
    blocks send =
        gathers
            ? cut_blocks(rank, in, in, 1)
            : cut_blocks(rank, in,
                         shards_of_members(rank, call, members, call->node->out[0]), n);
    blocks receive =
        reduces
            ? cut_blocks(rank, out, out, 1)
            : cut_blocks(rank, out,
                         shards_of_members(rank, call, members, call->node->in[0]), n);
    assert(send.count == in->count && receive.count == out->count);
    ms_status status = open_blocks(rank, &send);
    if (status != MS_OK)
        return status;
    status = open_blocks(rank, &receive);
    if (status == MS_OK) {
        status = move_blocks(rank, transfer, &send, &receive);
        close_blocks(rank, &receive);
    }
    close_blocks(rank, &send);
    return status;
}

static unsigned char kind_of(ms_collective collective)
{
    return collective == MS_ALL_GATHER       ? MS_TRANSFER_ALL_GATHER
           : collective == MS_REDUCE_SCATTER ? MS_TRANSFER_REDUCE_SCATTER
           : collective == MS_ALL_REDUCE     ? MS_TRANSFER_ALL_REDUCE
                                             : MS_TRANSFER_ALL_TO_ALL;
}

ms_status ms_lower_redistribute(ms_rank *rank, const ms_op_call *call)
{
    ms_node_comm comm;
    bool communicates = ms_node_communicates(call->program, call->node, &comm);
    if (!communicates) {
        if (rank->backend->has_values)
            change_locally(rank, call);
        return MS_OK;
    }
    if (rank->backend->has_values && ms_lower_shares_rows(call))
        return ms_lower_share_rows(rank, call, &comm);
    ms_transfer transfer = ms_lower_transfer(call, &comm);
    transfer.kind = kind_of(comm.collective);
    if (!rank->backend->has_values)
        return ms_lower_carry_out(rank, &transfer);
    if (transfer.kind == MS_TRANSFER_ALL_REDUCE)
        return all_reduce(rank, call, transfer);
    return exchange_blocks(rank, call, ms_lower_members(rank, &comm), transfer);
}
