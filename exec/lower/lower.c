#include "exec/lower/lower.h"

#include "costmodel/program/ring.h"
#include "exec/lower/lower_priv.h"

#include <assert.h>

const ms_members *ms_lower_members(const ms_rank *rank, const ms_node_comm *comm)
{
    return &rank->world->members[ms_world_group(comm)][rank->place->rank];
}

ms_transfer ms_lower_transfer(const ms_op_call *call, const ms_node_comm *comm)
{
    ms_traffic_group group = ms_world_group(comm);
    ms_stream stream = group == MS_TRAFFIC_TP   ? MS_STREAM_TP
                       : group == MS_TRAFFIC_CP ? MS_STREAM_CP
                                                : MS_STREAM_EP;
    ms_transfer transfer = {.scalar = call->in[0]->scalar,
                            .group = (unsigned char)group,
                            .stream = (unsigned char)stream,
                            .name = call->node->name,
                            .predicted = call->predicted};
    if (call->predicted != NULL)
        transfer.predicted_s = call->predicted->all_s;
    return transfer;
}

ms_status ms_lower_carry_out(ms_rank *rank, const ms_transfer *transfer)
{
    const ms_backend *backend = rank->backend;
    ms_event before = backend->mark(rank->device), done;
    MS_TRY(backend->start(rank->cx, rank->device, transfer, &before, 1, &done));
    return backend->wait(rank->cx, rank->device, done);
}

ms_status ms_lower_start_hop(ms_rank *rank, const ms_members *members,
                             const ms_transfer *transfer, ms_hop *out)
{
    const ms_backend *backend = rank->backend;
    ms_transfer one = *transfer;
    ms_event before = backend->mark(rank->device);
    assert(one.tag < MS_MAX_TAG);
    *out = (ms_hop){.moves = true};
    one.kind = MS_TRANSFER_SEND;
    one.peer = members->ranks[(members->own + 1) % members->size];
    MS_TRY(backend->start(rank->cx, rank->device, &one, &before, 1, &out->sent));
    one.kind = MS_TRANSFER_RECEIVE;
    one.peer = members->ranks[(members->own + members->size - 1) % members->size];
    return backend->start(rank->cx, rank->device, &one, &before, 1, &out->received);
}

ms_status ms_lower_end_hop(ms_rank *rank, const ms_hop *hop)
{
    if (!hop->moves)
        return MS_OK;
    MS_TRY(rank->backend->wait(rank->cx, rank->device, hop->received));
    return rank->backend->wait(rank->cx, rank->device, hop->sent);
}

long ms_lower_first_of(const ms_local *box, const ms_local *whole)
{
    long first = 0;
    for (int i = 0; i < box->num_dims; i++)
        first = first * whole->shape[i] + box->start[i] - whole->start[i];
    return first;
}

static void set_strides(const ms_local *whole, int num, long stride[MS_BOX_DIMS])
{
    long elements = 1;
    for (int i = whole->num_dims; i-- > 0;) {
        if (i < num)
            stride[i] = elements;
        elements *= whole->shape[i];
    }
}

/* Copies pieces that are contiguous in both tensors: a piece spans all inner dims that
 * are whole in both, and the next outer dim. */
void ms_lower_copy_box(const ms_rank *rank, const ms_local *box, const ms_local *from,
                       const ms_local *to)
{
    if (box->count == 0)
        return;
    size_t element_bytes = ms_scalar_bytes((ms_scalar)from->scalar);
    ms_box_copy copy = {.to = (char *)to->data +
                              (size_t)ms_lower_first_of(box, to) * element_bytes,
                        .from = (const char *)from->data +
                                (size_t)ms_lower_first_of(box, from) * element_bytes,
                        .num = {1, 1, 1, 1},
                        .run = 1,
                        .element_bytes = element_bytes};
    int outer = box->num_dims;
    for (bool whole = true; outer > 0 && whole;) {
        long length = box->shape[--outer];
        copy.run *= length;
        whole = length == from->shape[outer] && length == to->shape[outer];
    }
    for (int i = 0; i < outer; i++)
        copy.num[i] = box->shape[i];
    set_strides(to, outer, copy.to_stride);
    set_strides(from, outer, copy.from_stride);
    rank->backend->arrays->copy_box(rank->device, &copy);
}

typedef ms_status lowering(ms_rank *rank, const ms_op_call *call);

static lowering *find_lowering(const ms_program *program, const ms_node *node)
{
    if (node->op == MS_OP_REDISTRIBUTE)
        return ms_lower_redistribute;
    if (node->op == MS_OP_EXCHANGE)
        return ms_lower_exchange;
    return ms_node_is_ring(program, node) ? ms_lower_ring : NULL;
}

bool ms_is_lowered(const ms_program *program, const ms_node *node)
{
    return find_lowering(program, node) != NULL;
}

ms_status ms_lower(ms_rank *rank, const ms_op_call *call)
{
    lowering *lower = find_lowering(call->program, call->node);
    assert(lower != NULL);
    return lower(rank, call);
}
