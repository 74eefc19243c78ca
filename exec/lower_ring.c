/* Ring attention (costmodel/ring.h): in step i a rank works on the block of the rank i
 * before it, while that of the next step arrives. In backward the gradient of a block
 * follows one step behind: what the ranks before have added arrives while this rank makes
 * its own addition. */
#include "costmodel/ring.h"

#include "exec/lower_priv.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    TAG_BLOCK,
    TAG_GRADIENT,
    NUM_TAGS
};

/* A block is the keys and values of one rank, one after the other in memory; so are their
 * gradients. */
typedef struct ring {
    ms_rank *rank;
    const ms_op_call *call;
    const ms_members *members;
    ms_transfer transfer;  /* what all transfers have in common */
    long key_count, count; /* elements of the keys, and of both */
    size_t block_bytes;
    void *counted, *workspace;
    double counted_bytes, workspace_bytes;
    /* the one at work and the one that arrives */
    char *block[2];
    /* what this rank adds to a block, what was added to the one before it, and what was
     * added to this one by other ranks */
    char *gradient[3];
    /* Where sums have a wider type: of o or gradients of queries, over the steps; and
     * what the rank adds to a block before it is rounded. Otherwise the result, and
     * gradient[0]. */
    bool is_wide;
    ms_local sums;
    char *own;
} ring;

/* ---- memory ---- */

#define ALIGNMENT 256.0 /* of parts of the workspace */

static double aligned_bytes(ms_scalar scalar, long count)
{
    return ceil((double)count * (double)ms_scalar_bytes(scalar) / ALIGNMENT) * ALIGNMENT;
}

/* Sums over blocks come first: predictions count none of them, as they do not count what
 * kernels of whole sequences add up in. */
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
        r->own = first + (size_t)sums_bytes;
    }
    if (!backward) /* there may be no workspace */
        return MS_OK;
    r->gradient[1] = first + (size_t)(sums_bytes + own_bytes);
    r->gradient[2] = r->gradient[1] + r->block_bytes;
    return MS_OK;
}

/* Predictions count both blocks and one gradient. */
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
    r->transfer.predicted = NULL; /* that is of the attention */
    r->transfer.predicted_s = 0.0;
    r->transfer.count = r->count;
    r->block_bytes = ms_lower_bytes(call->in[1], r->count);
    /* a stack whose rings carry more (repeated heads, gradients in fp32) is priced with
     * more than this ring uses */
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

static ms_status start_hop(const ring *r, long step, int what, const char *send,
                           char *receive, ms_hop *out)
{
    ms_transfer transfer = r->transfer;
    transfer.tag = (int)(step * NUM_TAGS) + what;
    transfer.send = send;
    transfer.receive = receive;
    return ms_lower_start_hop(r->rank, r->members, &transfer, out);
}

static ms_status end_hop(const ring *r, const ms_hop *hop)
{
    return ms_lower_end_hop(r->rank, hop);
}

/* ---- blocks ---- */

static char *values_in(const ring *r, char *block)
{
    return block + ms_lower_bytes(r->call->in[1], r->key_count);
}

static void copy(const ring *r, void *to, const void *from, size_t bytes)
{
    r->rank->backend->arrays->copy(r->rank->device, to, from, bytes);
}

static void fill(const ring *r, const ms_local *like, void *to, double value, long count)
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

/* Once for all steps. */
static void round_sums(const ring *r)
{
    if (r->is_wide)
        round_to(r, r->call->out[0]->data, r->sums.data, NULL, r->sums.count);
}

static void join(const ring *r, char *block, const ms_local *keys, const ms_local *values)
{
    copy(r, block, keys->data, ms_lower_bytes(keys, keys->count));
    copy(r, values_in(r, block), values->data, ms_lower_bytes(values, values->count));
}

static void part(const ring *r, char *block, ms_local *keys, ms_local *values)
{
    copy(r, keys->data, block, ms_lower_bytes(keys, keys->count));
    copy(r, values->data, values_in(r, block), ms_lower_bytes(values, values->count));
}

/* Keys and values, or their gradients, as they lie in a block of the rank whose turn it is. */
static void point(const ring *r, long step, char *block, ms_local *keys, ms_local *values)
{
    const ms_members *m = r->members;
    const ms_node *node = r->call->node;
    long owner = m->ranks[(m->own + m->size - step) % m->size];
    const ms_place *place = &r->rank->world->places[owner];
    *keys = ms_world_local(r->rank->world, r->call->program, node->in[1], place);
    *values = ms_world_local(r->rank->world, r->call->program, node->in[2], place);
    keys->scalar = r->call->in[1]->scalar;
    values->scalar = r->call->in[2]->scalar;
    keys->data = block;
    values->data = values_in(r, block);
}

/* ---- forward ---- */

static void attend(const ring *r, long step)
{
    const ms_op_call *call = r->call;
    ms_local keys, values, sums = r->sums;
    point(r, step, r->block[step % 2], &keys, &values);
    ms_attention_block block = {.call = call,
                                .q = call->in[0],
                                .k = &keys,
                                .v = &values,
                                .o = &sums,
                                .lse = call->out[1]};
    r->rank->backend->arrays->attention_block(r->rank->device, &block, call->workspace);
}

static ms_status start_next_block(const ring *r, long step, ms_hop *out)
{
    *out = (ms_hop){0};
    if (step + 1 == r->members->size)
        return MS_OK;
    return start_hop(r, step, TAG_BLOCK, r->block[step % 2], r->block[(step + 1) % 2],
                     out);
}

static ms_status run_forward(const ring *r)
{
    const ms_op_call *call = r->call;
    const ms_local *lse = call->out[1];
    fill(r, &r->sums, r->sums.data, 0.0, r->sums.count);
    fill(r, lse, lse->data, -HUGE_VAL, lse->count);
    join(r, r->block[0], call->in[1], call->in[2]);
    for (long step = 0; step < r->members->size; step++) {
        ms_hop block;
        MS_TRY(start_next_block(r, step, &block));
        attend(r, step);
        MS_TRY(end_hop(r, &block));
    }
    round_sums(r);
    return MS_OK;
}

/* ---- backward ---- */

/* Of this rank alone, in the type of sums. */
static void make_gradients(const ring *r, long step, char *gradient)
{
    const ms_op_call *call = r->call;
    ms_local keys, values, gk, gv, o = *call->in[3], lse = *call->in[4], gq = r->sums;
    point(r, step, r->block[step % 2], &keys, &values);
    point(r, step, gradient, &gk, &gv);
    gk.scalar = gv.scalar = gq.scalar;
    gv.data = gradient + ms_lower_bytes(&gk, r->key_count);
    ms_attention_block block = {.call = call,
                                .q = call->in[0],
                                .k = &keys,
                                .v = &values,
                                .o = &o,
                                .lse = &lse,
                                .go = call->in[5],
                                .gq = &gq,
                                .gk = &gk,
                                .gv = &gv};
    fill(r, &gk, gradient, 0.0, r->count);
    r->rank->backend->arrays->attention_block_grad(r->rank->device, &block,
                                                   call->workspace);
}

/* What other ranks have added (NULL: none has) and this one: rounded once for each rank,
 * to the type that it travels in. */
static void add_others(const ring *r, char *ours, const char *others)
{
    if (r->is_wide)
        round_to(r, ours, r->own, others, r->count);
    else if (others != NULL)
        r->rank->backend->arrays->add(r->rank->device, (ms_scalar)r->sums.scalar, ours,
                                      others, r->count);
}

static ms_status run_backward(const ring *r)
{
    const ms_op_call *call = r->call;
    char *ours = r->gradient[0], *before = r->gradient[1], *others = r->gradient[2];
    fill(r, &r->sums, r->sums.data, 0.0, r->sums.count);
    join(r, r->block[0], call->in[1], call->in[2]);
    for (long step = 0; step < r->members->size; step++) {
        ms_hop block, gradient = {0};
        MS_TRY(start_next_block(r, step, &block));
        if (step > 0)
            MS_TRY(start_hop(r, step, TAG_GRADIENT, before, others, &gradient));
        make_gradients(r, step, r->is_wide ? r->own : ours);
        MS_TRY(end_hop(r, &gradient));
        add_others(r, ours, step > 0 ? others : NULL);
        MS_TRY(end_hop(r, &block));
        char *sent = before;
        before = ours;
        ours = sent;
    }
    ms_hop home;
    MS_TRY(start_hop(r, 0, TAG_GRADIENT, before, others, &home));
    MS_TRY(end_hop(r, &home));
    part(r, others, call->out[1], call->out[2]);
    round_sums(r);
    return MS_OK;
}

/* ---- both ---- */

/* The transfers beside it are predicted apart from the attention (sim/part_ops.h). */
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
