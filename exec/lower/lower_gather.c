/* Exchange of tokens by all-gather (a plan's dispatcher `allgather`): each rank of an ep
 * group gets all tokens of the group, takes those of its experts, and adds up its experts'
 * weighted results, of which a reduce-scatter returns each rank its tokens' sums. The
 * kernels are those of one rank: to it a choice of another rank's expert is a dropped one.
 *
 * Tensors of token copies in front of the experts, one row a copy, have the tokens in their
 * first rows instead. Those behind the experts stay at the experts' rank, so that dispatch
 * moves tokens, UNPERMUTE their sums, and combine nothing. */
#include "exec/lower/lower_priv.h"

static const ms_node_comm over_ep = {MS_ALL_GATHER, MS_SPARSE_MESH, 1, 0.0};

bool ms_lower_gathers(const ms_rank *rank, const ms_program *program)
{
    return rank->tokens_buffer != NULL && program->mesh_size[MS_SPARSE_MESH][1] > 1;
}

/* A matrix with a row for each of the ep group's tokens. */
static ms_local of_all_tokens(const ms_op_call *call, long width, ms_local like)
{
    const ms_local *choice = call->routing->choice;
    ms_local all = {.scalar = like.scalar, .num_dims = 2, .data = like.data};
    all.shape[0] = ms_local_leading(choice);
    all.shape[1] = width;
    all.count = all.shape[0] * width;
    return all;
}

/* Gathers or, with `back`, reduce-scatters a matrix of all tokens; own: this rank's part. */
static ms_status move(ms_rank *rank, const ms_op_call *call, void *own,
                      const ms_local *all, bool back)
{
    ms_transfer transfer = ms_lower_transfer(call, &over_ep);
    transfer.kind = back ? MS_TRANSFER_REDUCE_SCATTER : MS_TRANSFER_ALL_GATHER;
    transfer.scalar = all->scalar;
    transfer.send = back ? all->data : own;
    transfer.receive = back ? own : all->data;
    transfer.count = all->count / ms_lower_members(rank, &over_ep)->size;
    return ms_lower_carry_out(rank, &transfer);
}

/* ---- choices ---- */

/* Counts the rows that this rank's experts get from each rank, and drops the choices of
 * other experts. */
static void keep_own(double *choices, long num, long first, ms_routing *routing,
                     long *counts)
{
    long per_source = num / routing->num_sources;
    for (long i = 0; i < num; i++) {
        long expert = (long)choices[i] - first;
        if (choices[i] < 0.0)
            continue;
        if (expert >= 0 && expert < routing->num_experts)
            counts[i / per_source * routing->num_experts + expert]++;
        else
            choices[i] = -1.0 - choices[i];
    }
}

ms_status ms_lower_gather_choice(ms_rank *rank, ms_arena *arena, const ms_op_call *call,
                                 ms_routing *routing, long *counts)
{
    const ms_local *own = call->in[1];
    const ms_array_ops *arrays = rank->backend->arrays;
    ms_local *all = MS_NEW(arena, ms_local);
    *all = *own;
    all->shape[0] *= routing->num_sources; /* leading dims: all ranks' tokens */
    all->count *= routing->num_sources;
    all->data = ms_arena_alloc(arena, ms_lower_bytes(all, all->count));
    ms_op_call gather = *call;
    gather.predicted = NULL; /* predictions leave out choices */
    MS_TRY(move(rank, &gather, own->data, all, false));
    double *choices = MS_NEW_ARRAY(rank->scratch, all->count, double);
    MS_TRY(arrays->read(rank->cx, rank->device, (ms_scalar)all->scalar, choices,
                        all->data, all->count));
    keep_own(choices, all->count,
             ms_lower_members(rank, &over_ep)->own * routing->num_experts, routing,
             counts);
    routing->choice = all;
    return arrays->write(rank->cx, rank->device, (ms_scalar)all->scalar, all->data,
                         choices, all->count);
}

/* ---- dispatch ---- */

/* Tokens to the rows of this rank's experts, or gradients of rows to those of tokens. */
static ms_status dispatch(ms_rank *rank, const ms_op_call *call)
{
    bool back = call->node->inverse;
    const ms_local *rows = back ? call->in[0] : call->out[0];
    ms_node node = *call->node;
    ms_op_call local = *call;
    ms_local tokens = of_all_tokens(
        call, ms_local_last(rows), (ms_local){rows->scalar, .data = rank->tokens_buffer});
    node.op = back ? MS_OP_PERMUTE_GRAD : MS_OP_PERMUTE;
    local.node = &node;
    local.in[0] = back ? rows : &tokens;
    local.in[1] = call->routing->choice;
    local.out[0] = back ? &tokens : call->out[0];
    if (!back)
        MS_TRY(move(rank, call, call->in[0]->data, &tokens, false));
    MS_TRY(rank->backend->kernel(rank->cx, rank->device, &local));
    return back ? move(rank, call, call->out[0]->data, &tokens, true) : MS_OK;
}

static ms_status copy(const ms_rank *rank, const ms_op_call *call, const ms_local *shape)
{
    ms_rank_copy(rank, call->out[0]->data, call->in[0]->data,
                 (double)ms_lower_bytes(shape, shape->count));
    return MS_OK;
}

static ms_status exchange(ms_rank *rank, const ms_op_call *call)
{
    return ms_node_combines(call->node) ? copy(rank, call, call->out[0])
                                        : dispatch(rank, call);
}

/* ---- combine ---- */

/* Adds up rows to tokens, or makes the gradients of rows and weights; `weights`: of all
 * tokens, `gweights` with room for their gradients. */
static ms_status weigh(ms_rank *rank, const ms_op_call *call, ms_local *weights,
                       ms_local *gweights)
{
    bool back = call->node->op == MS_OP_UNPERMUTE_GRAD;
    const ms_local *sums = back ? call->in[0] : call->out[0];
    ms_op_call local = *call;
    ms_local tokens = of_all_tokens(
        call, ms_local_last(sums), (ms_local){sums->scalar, .data = rank->tokens_buffer});
    local.in[back ? 2 : 1] = weights;
    local.in[back ? 3 : 2] = call->routing->choice;
    if (back) {
        local.in[0] = &tokens;
        local.out[1] = gweights;
        MS_TRY(move(rank, call, call->in[0]->data, &tokens, false));
    } else {
        local.out[0] = &tokens;
    }
    MS_TRY(rank->backend->kernel(rank->cx, rank->device, &local));
    return back ? move(rank, call, call->out[1]->data, gweights, true)
                : move(rank, call, call->out[0]->data, &tokens, true);
}

static ms_status weigh_rows(ms_rank *rank, const ms_op_call *call)
{
    const ms_local *own = call->in[call->node->op == MS_OP_UNPERMUTE_GRAD ? 2 : 1];
    void *memory;
    ms_local weights =
        of_all_tokens(call, ms_local_last(own), (ms_local){own->scalar, .data = NULL});
    size_t bytes = ms_lower_bytes(&weights, weights.count);
    ms_op_call unpriced =
        *call; /* the exchange has the predicted time of its transfers */
    unpriced.predicted = NULL;
    MS_TRY(ms_rank_workspace(rank, 2.0 * (double)bytes, &memory));
    weights.data = memory;
    ms_local gweights = weights;
    gweights.data = (char *)memory + bytes;
    ms_status status = move(rank, &unpriced, own->data, &weights, false);
    if (status == MS_OK)
        status = weigh(rank, &unpriced, &weights, &gweights);
    ms_rank_release_workspace(rank, 2.0 * (double)bytes, memory);
    return status;
}

ms_status ms_lower_gathered(ms_rank *rank, const ms_op_call *call, bool *done)
{
    *done = ms_lower_gathers(rank, call->program);
    if (!*done)
        return MS_OK;
    switch (call->node->op) {
    case MS_OP_PERMUTE: /* a copy of each token, the others are made at the experts */
        return copy(rank, call, call->in[0]);
    case MS_OP_PERMUTE_GRAD:
        return copy(rank, call, call->out[0]);
    case MS_OP_EXCHANGE:
        return exchange(rank, call);
    case MS_OP_UNPERMUTE:
    case MS_OP_UNPERMUTE_GRAD:
        return weigh_rows(rank, call);
    default:
        *done = false;
        return MS_OK;
    }
}
