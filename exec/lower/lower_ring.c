/* Ring attention (costmodel/program/ring.h). In iteration i a rank attends to the keys
 * and values (block) of the rank i places before it while the next block arrives. In
 * backward a block's gradient follows it one iteration later: the sum over the ranks
 * before arrives while this rank computes its own part. */
#include "costmodel/program/ring.h"

#include "exec/lower/lower_priv.h"

#include <math.h>
#include <string.h>

enum {
    TAG_BLOCK,
    TAG_GRADIENT,
    NUM_TAGS
};

/* Below, a block is one rank's keys, then its values; gradients are stored likewise. */
typedef struct ring {
    ms_rank *rank;
    const ms_op_call *call;
    const ms_members *members;
    ms_transfer transfer;  /* fields shared by all transfers */
    long key_count, count; /* elements of a block's keys; of its keys and values */
    size_t block_bytes;
    void *counted, *workspace;
    double counted_bytes, workspace_bytes;
    char *block[2]; /* block in use and block that arrives; they alternate */
    /* gradients of a block: own contribution, sum to send, received sum */
    char *gradient[3];
    /* Whether sums are wider than results (fp32 for bf16). If so, o or the gradients of
     * queries accumulate in `sums`, and this rank's part of a block's gradient is
     * computed in `wide_gradient`. If not, in the result itself and in gradient[0]. */
    bool is_wide;
    ms_local sums;
    char *wide_gradient;
} ring;

/* ---- memory ---- */

#define ALIGNMENT 256.0 /* bytes; alignment of buffers in the workspace */

static double aligned_bytes(ms_scalar scalar, long count)
{
    return ceil((double)count * (double)ms_scalar_bytes(scalar) / ALIGNMENT) * ALIGNMENT;
}

/* Allocates workspace: wide sums and, in backward, two gradient blocks. */
static ms_status open_workspace(ring *r, bool backward)
{
    ms_scalar wide = r->rank->precision.statistic;
    r->sums = *r->call->out[0];
    r->is_wide = (ms_scalar)r->sums.scalar != wide;
    double sums_bytes = r->is_wide ? aligned_bytes(wide, r->sums.count) : 0.0;
    double own_bytes = r->is_wide && backward ? aligned_bytes(wide, r->count) : 0.0;
    r->workspace_bytes =
        sums_bytes + own_bytes + (backward ? 2.0 * (double)r->block_bytes : 0.0);
    MS_TRY(ms_rank_workspace(r->rank, r->workspace_bytes, &r->workspace));
    char *first = r->workspace;
    if (r->is_wide) {
        r->sums.scalar = (unsigned char)wide;
        r->sums.data = first;
        r->wide_gradient = first + (size_t)sums_bytes;
    }
    if (!backward) /* the workspace is NULL if sums are not wide */
        return MS_OK;
    r->gradient[1] = first + (size_t)(sums_bytes + own_bytes);
    r->gradient[2] = r->gradient[1] + r->block_bytes;
    return MS_OK;
}

/* Predicted seconds of a hop; 0 for a program that is executed without a plan. */
static double hop_s(const ms_rank *rank, double bytes)
{
    return rank->planned == NULL
               ? 0.0
               : ms_collective_s(&rank->planned->links.law[MS_BILL_CP][MS_SEND], bytes);
}

/* Allocates memory that predictions count: two blocks, in backward also a gradient's. */
static ms_status open_ring(ms_rank *rank, const ms_op_call *call, ring *r)
{
    ms_node_comm comm = {.mesh = MS_DENSE_MESH, .axis = 1};
    bool backward = call->node->op == MS_OP_ATTENTION_GRAD;
    *r = (ring){.rank = rank,
                .call = call,
                .members = ms_lower_members(rank, &comm),
                .transfer = ms_lower_transfer(call, &comm),
                .key_count = call->in[1]->count,
                .count = call->in[1]->count + call->in[2]->count};
    r->transfer.count = r->count;
    r->block_bytes = ms_lower_bytes(call->in[1], r->count);
    /* the node's prediction is for the attention, not for transfers */
    r->transfer.predicted = NULL;
    r->transfer.predicted_s = hop_s(rank, (double)r->block_bytes);
    /* At least what the plan was predicted to use, as some software stacks send more. */
    double used = (backward ? 3.0 : 2.0) * (double)r->block_bytes;
    double bytes = fmax(used, ms_ring_buffer_bytes(call->program, call->node));
    MS_TRY(ms_rank_allocate(rank, MS_MEMORY_ACTIVATIONS, bytes, &r->counted));
    r->counted_bytes = bytes;
    for (int i = 0; i < 2; i++)
        r->block[i] = (char *)r->counted + (size_t)i * r->block_bytes;
    if (backward)
        r->gradient[0] = (char *)r->counted + 2 * r->block_bytes;
    return open_workspace(r, backward);
}

static void close_ring(const ring *r)
{
    ms_rank_release_workspace(r->rank, r->workspace_bytes, r->workspace);
    ms_rank_release(r->rank, MS_MEMORY_ACTIVATIONS, r->counted_bytes, r->counted);
}

static ms_status start_hop(const ring *r, long iteration, int tag_kind, const char *send,
                           char *receive, ms_hop *out)
{
    ms_transfer transfer = r->transfer;
    transfer.tag = (int)(iteration * NUM_TAGS) + tag_kind;
    transfer.send = send;
    transfer.receive = receive;
    return ms_lower_start_hop(r->rank, r->members, &transfer, out);
}

/* ---- blocks ---- */

static char *values_in(const ring *r, char *block)
{
    return block + ms_lower_bytes(r->call->in[1], r->key_count);
}

static void ring_copy(const ring *r, void *to, const void *from, size_t bytes)
{
    r->rank->backend->arrays->copy(r->rank->device, to, from, bytes);
}

static void ring_fill(const ring *r, const ms_local *like, void *to, double value,
                      long count)
{
    r->rank->backend->arrays->fill(r->rank->device, (ms_scalar)like->scalar, to, value,
                                   count);
}

static void round_to(const ring *r, void *to, const void *from, const void *plus,
                     long count)
{
    ms_scalar scalar = (ms_scalar)r->call->out[0]->scalar;
    r->rank->backend->arrays->round_sum(r->rank->device,
                                        &(ms_rounded_sum){scalar, to, from, plus, count});
}

/* Rounds the accumulated sums to the type of results, once after all iterations. */
static void round_sums(const ring *r)
{
    if (r->is_wide)
        round_to(r, r->call->out[0]->data, r->sums.data, NULL, r->sums.count);
}

static void pack_block(const ring *r, char *block, const ms_local *keys,
                       const ms_local *values)
{
    ring_copy(r, block, keys->data, ms_lower_bytes(keys, keys->count));
    ring_copy(r, values_in(r, block), values->data,
              ms_lower_bytes(values, values->count));
}

static void unpack_block(const ring *r, char *block, ms_local *keys, ms_local *values)
{
    ring_copy(r, keys->data, block, ms_lower_bytes(keys, keys->count));
    ring_copy(r, values->data, values_in(r, block),
              ms_lower_bytes(values, values->count));
}

/* Keys and values, or their gradients, as views of the block that an iteration uses. */
static void view_block(const ring *r, long iteration, char *block, ms_local *keys,
                       ms_local *values)
{
    const ms_members *m = r->members;
    const ms_node *node = r->call->node;
    long owner = m->ranks[(m->own + m->size - iteration) % m->size];
    const ms_place *place = &r->rank->world->places[owner];
    *keys = ms_world_local(r->rank->world, r->call->program, node->in[1], place);
    *values = ms_world_local(r->rank->world, r->call->program, node->in[2], place);
    keys->scalar = r->call->in[1]->scalar;
    values->scalar = r->call->in[2]->scalar;
    keys->data = block;
    values->data = values_in(r, block);
}

/* ---- forward ---- */

static void attend_to_block(const ring *r, long iteration)
{
    const ms_op_call *call = r->call;
    ms_local keys, values, sums = r->sums;
    view_block(r, iteration, r->block[iteration % 2], &keys, &values);
    ms_attention_block block = {.call = call,
                                .q = call->in[0],
                                .k = &keys,
                                .v = &values,
                                .o = &sums,
                                .lse = call->out[1]};
    r->rank->backend->arrays->attention_block(r->rank->device, &block, call->workspace);
}

static ms_status start_next_block(const ring *r, long iteration, ms_hop *out)
{
    *out = (ms_hop){0};
    if (iteration + 1 == r->members->size)
        return MS_OK;
    return start_hop(r, iteration, TAG_BLOCK, r->block[iteration % 2],
                     r->block[(iteration + 1) % 2], out);
}

/* Sets log-sum-exps before the first block: those of the sinks, one row for all tokens,
 * or of no score at all. */
static ms_status begin_lse(const ring *r)
{
    const ms_local *lse = r->call->out[1], *sinks = r->call->in[3];
    const ms_array_ops *arrays = r->rank->backend->arrays;
    if (r->call->node->num_in == 3) {
        ring_fill(r, lse, lse->data, -HUGE_VAL, lse->count);
        return MS_OK;
    }
    long heads = ms_local_last(lse), first = lse->start[2] - sinks->start[0];
    double *row = MS_NEW_ARRAY(r->rank->scratch, heads, double);
    MS_TRY(arrays->read(r->rank->cx, r->rank->device, (ms_scalar)sinks->scalar, row,
                        (const char *)sinks->data + ms_lower_bytes(sinks, first), heads));
    MS_TRY(arrays->write(r->rank->cx, r->rank->device, (ms_scalar)lse->scalar, lse->data,
                         row, heads));
    const ms_box_copy copy = {.to = (char *)lse->data + ms_lower_bytes(lse, heads),
                              .from = lse->data,
                              .num = {ms_local_leading(lse) - 1, 1, 1, 1},
                              .to_stride = {heads},
                              .run = heads,
                              .element_bytes = ms_lower_bytes(lse, 1)};
    if (copy.num[0] > 0)
        arrays->copy_box(r->rank->device, &copy);
    return MS_OK;
}

static ms_status run_forward(const ring *r)
{
    const ms_op_call *call = r->call;
    ring_fill(r, &r->sums, r->sums.data, 0.0, r->sums.count);
    MS_TRY(begin_lse(r));
    pack_block(r, r->block[0], call->in[1], call->in[2]);
    for (long iteration = 0; iteration < r->members->size; iteration++) {
        ms_hop block;
        MS_TRY(start_next_block(r, iteration, &block));
        attend_to_block(r, iteration);
        MS_TRY(ms_lower_end_hop(r->rank, &block));
    }
    round_sums(r);
    return MS_OK;
}

/* ---- backward ---- */

/* Computes this rank's part of the gradients of keys and values, in the type of sums. */
static void make_gradients(const ring *r, long iteration, char *gradient)
{
    const ms_op_call *call = r->call;
    ms_local keys, values, gk, gv, o = *call->in[3], lse = *call->in[4], gq = r->sums;
    view_block(r, iteration, r->block[iteration % 2], &keys, &values);
    view_block(r, iteration, gradient, &gk, &gv);
    gk.scalar = gv.scalar = gq.scalar;
    gv.data = gradient + ms_lower_bytes(&gk, r->key_count);
    ms_attention_block block = {
        call,        .q = call->in[0],  .k = &keys, .v = &values, .o = &o,
        .lse = &lse, .go = call->in[5], .gq = &gq,  .gk = &gk,    .gv = &gv};
    ring_fill(r, &gk, gradient, 0.0, r->count);
    r->rank->backend->arrays->attention_block_grad(r->rank->device, &block,
                                                   call->workspace);
}

/* Adds the sum from the previous rank (NULL: none) to `current`, in the type sent. */
static void add_received(const ring *r, char *current, const char *received)
{
    if (r->is_wide)
        round_to(r, current, r->wide_gradient, received, r->count);
    else if (received != NULL)
        r->rank->backend->arrays->add(r->rank->device, (ms_scalar)r->sums.scalar, current,
                                      received, r->count);
}

static ms_status run_backward(const ring *r)
{
    const ms_op_call *call = r->call;
    char *current = r->gradient[0], *previous = r->gradient[1],
         *received = r->gradient[2];
    ring_fill(r, &r->sums, r->sums.data, 0.0, r->sums.count);
    pack_block(r, r->block[0], call->in[1], call->in[2]);
    for (long iteration = 0; iteration < r->members->size; iteration++) {
        ms_hop block, gradient = {0};
        MS_TRY(start_next_block(r, iteration, &block));
        if (iteration > 0)
            MS_TRY(start_hop(r, iteration, TAG_GRADIENT, previous, received, &gradient));
        make_gradients(r, iteration, r->is_wide ? r->wide_gradient : current);
        MS_TRY(ms_lower_end_hop(r->rank, &gradient));
        add_received(r, current, iteration > 0 ? received : NULL);
        MS_TRY(ms_lower_end_hop(r->rank, &block));
        char *sent = previous;
        previous = current;
        current = sent;
    }
    ms_hop home;
    MS_TRY(start_hop(r, 0, TAG_GRADIENT, previous, received, &home));
    MS_TRY(ms_lower_end_hop(r->rank, &home));
    unpack_block(r, received, call->out[1], call->out[2]);
    round_sums(r);
    return MS_OK;
}

/* ---- entry ---- */

/* Simulates only the attention: transfers of the ring are predicted separately. */
static ms_status run_without_values(ms_rank *rank, const ms_op_call *call)
{
    double bytes = ms_ring_buffer_bytes(call->program, call->node);
    void *none;
    MS_TRY(ms_rank_allocate(rank, MS_MEMORY_ACTIVATIONS, bytes, &none));
    ms_status status = rank->backend->kernel(rank->cx, rank->device, call);
    ms_rank_release(rank, MS_MEMORY_ACTIVATIONS, bytes, none);
    return status;
}

ms_status ms_lower_ring(ms_rank *rank, const ms_op_call *call)
{
    if (!rank->backend->has_values)
        return run_without_values(rank, call);
    ring r;
    ms_status status = open_ring(rank, call, &r);
    if (status == MS_OK)
        status = call->node->op == MS_OP_ATTENTION ? run_forward(&r) : run_backward(&r);
    close_ring(&r);
    return status;
}
