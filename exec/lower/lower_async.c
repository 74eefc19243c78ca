#include "exec/lower/lower_async.h"

#include "exec/lower/lower_priv.h"

#include <string.h>

/* ---- pairs of nodes ---- */

static bool is_by_token(const ms_program *program, int tensor)
{
    const char *dims = program->tensors[tensor].dims;
    return dims[0] == MS_DIM_BATCH && dims[1] == MS_DIM_SEQUENCE;
}

static bool has_sequence(const ms_program *program, int tensor)
{
    return strchr(program->tensors[tensor].dims, MS_DIM_SEQUENCE) != NULL;
}

/* Whether a redistribution over tp gathers or reduce-scatters along the sequence. */
static bool changes_sequence(const ms_program *program, const ms_node *node, bool gathers)
{
    const ms_placement split = gathers ? node->from : node->to,
                       other = gathers ? node->to : node->from;
    return node->op == MS_OP_REDISTRIBUTE && node->axis == 2 &&
           program->tensors[node->in[0]].mesh == MS_DENSE_MESH &&
           program->mesh_size[MS_DENSE_MESH][2] > 1 && split.kind == MS_SHARD &&
           split.dim == MS_DIM_SEQUENCE &&
           other.kind == (gathers ? MS_REPLICATE : MS_PARTIAL_SUM);
}

/* Index (0 or 1) of the operand of einsum `product` that has token dims while the other
 * has no sequence dim; -1 if none. `tensor`: the only operand allowed; -1: either. */
static int operand_by_token(const ms_program *program, const ms_node *product, int tensor)
{
    if (product->op != MS_OP_EINSUM || !is_by_token(program, product->out[0]))
        return -1;
    for (int i = 0; i < 2; i++) {
        bool wanted = tensor < 0 || product->in[i] == tensor;
        if (wanted && is_by_token(program, product->in[i]) &&
            !has_sequence(program, product->in[1 - i]))
            return i;
    }
    return -1;
}

bool ms_async_pair(const ms_program *program, int node, const ms_plan *plan)
{
    if (!plan->async_tp || node + 1 >= program->num_nodes)
        return false;
    const ms_node *first = &program->nodes[node], *second = first + 1;
    bool split = (first->pass == MS_PASS_BACKWARD_WEIGHT) !=
                 (second->pass == MS_PASS_BACKWARD_WEIGHT);
    if (split ||
        (node < program->num_forward_nodes && node + 1 >= program->num_forward_nodes))
        return false; /* nodes of different passes run at different times */
    if (changes_sequence(program, first, true))
        return operand_by_token(program, second, first->out[0]) >= 0;
    return changes_sequence(program, second, false) && second->in[0] == first->out[0] &&
           operand_by_token(program, first, -1) >= 0;
}

/* ---- chunks ---- */

typedef struct chunks {
    ms_rank *rank;
    const ms_members *members;
    const ms_op_call *product;
    int operand; /* index (0, 1) of the product's operand with token dims */
    ms_transfer transfer;
    long length; /* tokens per sequence in one chunk */
    double bytes;
    char *buffer[2];
} chunks;

/* View of tokens first .. first + c->length - 1 of one sequence of x. */
static ms_local tokens_of(const chunks *c, const ms_local *x, long sequence, long first)
{
    ms_local view = *x;
    long width = x->count / (x->shape[0] * x->shape[1]);
    size_t before = (size_t)((sequence * x->shape[1] + first) * width);
    view.data = (char *)x->data + before * ms_scalar_bytes((ms_scalar)x->scalar);
    view.shape[0] = 1;
    view.shape[1] = c->length;
    view.start[0] += sequence;
    view.start[1] += first;
    view.count = c->length * width;
    return view;
}

/* Multiplies a chunk of tokens sequence by sequence, as only these are contiguous. */
static ms_status multiply_chunk(const chunks *c, long chunk)
{
    ms_op_call call = *c->product;
    const ms_local *in = call.in[c->operand];
    ms_local *out = call.out[0];
    for (long sequence = 0; sequence < in->shape[0]; sequence++) {
        ms_local from = tokens_of(c, in, sequence, chunk * c->length),
                 to = tokens_of(c, out, sequence, chunk * c->length);
        call.in[c->operand] = &from;
        call.out[0] = &to;
        MS_TRY(c->rank->backend->kernel(c->rank->cx, c->rank->device, &call));
    }
    return MS_OK;
}

/* Copies chunk number `chunk` between its own memory `alone` and the tensor `whole`;
 * `to_whole`: from `alone` to `whole`. */
static void copy_chunk(const chunks *c, long chunk, void *alone, const ms_local *whole,
                       bool to_whole)
{
    ms_local view = *whole;
    view.shape[1] = c->length;
    view.start[1] += chunk * c->length;
    view.count = whole->count / whole->shape[1] * c->length;
    view.data = alone;
    ms_lower_copy_box(c->rank, &view, to_whole ? &view : whole, to_whole ? whole : &view);
}

static ms_status start_hop(const chunks *c, long iteration, const void *send,
                           void *receive, ms_hop *out)
{
    ms_transfer transfer = c->transfer;
    transfer.tag = (int)iteration;
    transfer.send = send;
    transfer.receive = receive;
    return ms_lower_start_hop(c->rank, c->members, &transfer, out);
}

/* All-gather as a ring: each rank multiplies the chunk it holds and passes it on. */
static ms_status gather_and_multiply(const chunks *c, const ms_op_call *change)
{
    long size = c->members->size;
    char *held = change->in[0]->data;
    for (long iteration = 0; iteration < size; iteration++) {
        long chunk = (c->members->own - iteration + size) % size;
        char *next = c->buffer[iteration % 2];
        ms_hop hop = {0};
        if (iteration + 1 < size)
            MS_TRY(start_hop(c, iteration, held, next, &hop));
        copy_chunk(c, chunk, held, change->out[0], true);
        MS_TRY(multiply_chunk(c, chunk));
        MS_TRY(ms_lower_end_hop(c->rank, &hop));
        held = next;
    }
    return MS_OK;
}

/* Reduce-scatter as a ring: the sum of a chunk travels from rank to rank, and each rank
 * adds its own product for that chunk. */
static ms_status multiply_and_scatter(const chunks *c, const ms_op_call *change)
{
    long size = c->members->size;
    const ms_local *out = change->out[0];
    char *sum = c->buffer[0], *arrived = c->buffer[1];
    for (long iteration = 0; iteration < size; iteration++) {
        long chunk = (c->members->own + 2 * size - 1 - iteration) % size;
        ms_hop hop = {0};
        if (iteration > 0)
            MS_TRY(start_hop(c, iteration, sum, arrived, &hop));
        MS_TRY(multiply_chunk(c, chunk));
        MS_TRY(ms_lower_end_hop(c->rank, &hop));
        void *to = iteration + 1 < size ? (void *)sum : out->data;
        copy_chunk(c, chunk, to, c->product->out[0], false);
        if (iteration > 0)
            c->rank->backend->arrays->add(c->rank->device, (ms_scalar)out->scalar, to,
                                          arrived, out->count);
    }
    return MS_OK;
}

static chunks chunks_of(ms_rank *rank, const ms_op_call *change,
                        const ms_op_call *product, bool gathers)
{
    ms_node_comm comm;
    ms_node_communicates(change->program, change->node, &comm);
    const ms_local *chunk = gathers ? change->in[0] : change->out[0];
    int tensor = gathers ? change->node->out[0] : -1;
    chunks c = {.rank = rank,
                .members = ms_lower_members(rank, &comm),
                .product = product,
                .operand = operand_by_token(change->program, product->node, tensor),
                .transfer = ms_lower_transfer(change, &comm),
                .length = chunk->shape[1],
                .bytes = (double)ms_lower_bytes(chunk, chunk->count)};
    c.transfer.count = chunk->count;
    c.transfer.predicted = NULL; /* the prediction is for all chunks together */
    c.transfer.predicted_s /= (double)c.members->size;
    return c;
}

ms_status ms_lower_async(ms_rank *rank, const ms_op_call *first, const ms_op_call *second)
{
    bool gathers = first->node->op == MS_OP_REDISTRIBUTE;
    const ms_op_call *change = gathers ? first : second;
    chunks c = chunks_of(rank, change, gathers ? second : first, gathers);
    void *memory;
    MS_TRY(ms_rank_workspace(rank, 2.0 * c.bytes, &memory));
    c.buffer[0] = memory;
    c.buffer[1] = c.buffer[0] + (size_t)c.bytes;
    ms_status status =
        gathers ? gather_and_multiply(&c, change) : multiply_and_scatter(&c, change);
    ms_rank_release_workspace(rank, 2.0 * c.bytes, memory);
    return status;
}
