/* Exchange of MoE token rows. A dispatch sends rows, then sorts received ones from order
 * (source, expert) to (expert, source). A combine sorts rows back, then returns them. Rows
 * of zeros that fill experts up to their capacity travel with them. */
#include "exec/lower/lower_priv.h"

#include <assert.h>
#include <string.h>

/* ---- row counts ---- */

static ms_status exchange_counts(ms_rank *rank, const ms_op_call *call,
                                 const ms_routing *routing, long *counts)
{
    ms_node_comm comm;
    long total = routing->num_sources * routing->num_experts;
    if (!ms_node_communicates(call->program, call->node, &comm)) {
        memcpy(counts, routing->sent, (size_t)total * sizeof *counts);
        return MS_OK;
    }
    long *each = MS_NEW_ARRAY(rank->scratch, routing->num_sources, long);
    for (int i = 0; i < routing->num_sources; i++)
        each[i] = routing->num_experts;
    ms_transfer transfer = ms_lower_transfer(call, &comm);
    transfer.kind = MS_TRANSFER_ALL_TO_ALL;
    transfer.scalar = MS_SCALAR_LONG;
    transfer.on_host = true;
    transfer.send = routing->sent;
    transfer.receive = counts;
    transfer.send_counts = transfer.receive_counts = each;
    transfer.count = total;
    transfer.predicted = NULL; /* predicted times leave out the exchange of counts */
    transfer.predicted_s = 0.0;
    return ms_lower_carry_out(rank, &transfer);
}

/* Exchanges the numbers of received rows among ranks that share experts (etp). */
static ms_status share_counts(ms_rank *rank, ms_arena *arena, const ms_op_call *call,
                              ms_routing *routing)
{
    long etp = call->program->mesh_size[MS_SPARSE_MESH][2], num = routing->num_experts;
    if (etp == 1)
        return MS_OK;
    long *own = MS_NEW_ARRAY(rank->scratch, num, long),
         *shared = MS_NEW_ARRAY(arena, etp * num, long);
    for (long i = 0; i < routing->num_sources * num; i++)
        own[i % num] += routing->counts[i];
    routing->num_sharers = (int)etp;
    routing->shared = shared;
    const ms_node_comm comm = {MS_ALL_GATHER, MS_SPARSE_MESH, 2, 0.0};
    ms_transfer transfer = ms_lower_transfer(call, &comm);
    transfer.kind = MS_TRANSFER_ALL_GATHER;
    transfer.scalar = MS_SCALAR_LONG;
    transfer.on_host = true;
    transfer.send = own;
    transfer.receive = shared;
    transfer.count = num;
    transfer.predicted = NULL;
    transfer.predicted_s = 0.0;
    MS_TRY(ms_lower_carry_out(rank, &transfer));
    for (long i = 0; i < etp * num; i++)
        routing->num_shared_rows += shared[i];
    return MS_OK;
}

ms_status ms_lower_route(ms_rank *rank, ms_arena *arena, const ms_op_call *call,
                         ms_routing **out)
{
    const ms_program *program = call->program;
    const ms_local *choice = call->in[1];
    long num_experts = (long)program->size[MS_DIM_EXPERTS - '0'];
    long ep = program->mesh_size[MS_SPARSE_MESH][1];
    long *kept = MS_NEW_ARRAY(arena, num_experts, long), *sent = kept,
         *counts = MS_NEW_ARRAY(arena, num_experts, long);
    ms_routing *routing = MS_NEW(arena, ms_routing);
    *routing = (ms_routing){.num_sources = (int)ep,
                            .num_experts = num_experts / ep,
                            .counts = counts,
                            .kept = kept};
    *out = routing;
    if (call->capacity != NULL && call->capacity->pads)
        sent = MS_NEW_ARRAY(arena, num_experts, long);
    routing->sent = sent;
    if (!rank->backend->has_values) {
        for (long e = 0; e < num_experts; e++)
            sent[e] = counts[e] = choice->count / num_experts;
        routing->num_rows = choice->count;
        return MS_OK;
    }
    MS_TRY(
        rank->backend->arrays->count(rank->cx, rank->device, choice, kept, num_experts));
    for (long e = 0; e < num_experts && sent != kept; e++)
        sent[e] = ms_capacity_rows(call->capacity, choice->count, num_experts);
    if (ms_lower_gathers(rank, program))
        MS_TRY(ms_lower_gather_choice(rank, arena, call, routing, counts));
    else
        MS_TRY(exchange_counts(rank, call, routing, counts));
    for (long i = 0; i < num_experts; i++)
        routing->num_rows += counts[i];
    return share_counts(rank, arena, call, routing);
}

/* ---- rows ---- */

/* Index of the first row of each (source, expert) block in the order they are sent. */
static long *first_rows(const ms_rank *rank, const ms_routing *routing)
{
    long num = routing->num_sources * routing->num_experts, before = 0;
    long *first = MS_NEW_ARRAY(rank->scratch, num, long);
    for (long i = 0; i < num; i++) {
        first[i] = before;
        before += routing->counts[i];
    }
    return first;
}

/* Copies rows from order (source, expert), as sent, to (expert, source), or back. */
static void reorder_rows(const ms_rank *rank, const ms_routing *routing, size_t row_bytes,
                         char *travelling, char *sorted, bool sort)
{
    const long *first = first_rows(rank, routing);
    for (long e = 0; e < routing->num_experts && routing->num_rows > 0; e++) {
        for (long source = 0; source < routing->num_sources; source++) {
            long i = source * routing->num_experts + e;
            char *block = travelling + (size_t)first[i] * row_bytes;
            size_t bytes = (size_t)routing->counts[i] * row_bytes;
            rank->backend->arrays->copy(rank->device, sort ? sorted : block,
                                        sort ? block : sorted, bytes);
            sorted += bytes;
        }
    }
}

/* [ep rank] elements to exchange with each: sum of its experts' `counts` x `width`. */
static long *elements_per_rank(const ms_rank *rank, const ms_routing *routing,
                               const long *counts, long width)
{
    long *elements = MS_NEW_ARRAY(rank->scratch, routing->num_sources, long);
    for (long i = 0; i < routing->num_sources * routing->num_experts; i++)
        elements[i / routing->num_experts] += counts[i] * width;
    return elements;
}

/* Exchanges token rows. `rows`: those at their tokens' rank. `memory`: those at their
 * experts' rank in order (source, expert), received by a dispatch and sent by a combine. */
static ms_status move_rows(ms_rank *rank, const ms_op_call *call, ms_transfer transfer,
                           void *rows, void *memory)
{
    const ms_routing *routing = call->routing;
    const ms_local *in = call->in[0];
    ms_local *out = call->out[0];
    bool inverse = call->node->inverse;
    long width = in->shape[1];
    long *dense = elements_per_rank(rank, routing, routing->sent, width),
         *sparse = elements_per_rank(rank, routing, routing->counts, width);
    size_t row_bytes = ms_lower_bytes(in, width);
    if (inverse && memory != in->data)
        reorder_rows(rank, routing, row_bytes, memory, in->data, false);
    transfer.kind = MS_TRANSFER_ALL_TO_ALL;
    transfer.send = inverse ? memory : rows;
    transfer.receive = inverse ? rows : memory;
    transfer.send_counts = inverse ? sparse : dense;
    transfer.receive_counts = inverse ? dense : sparse;
    transfer.count = out->count;
    MS_TRY(ms_lower_carry_out(rank, &transfer));
    if (!inverse && memory != out->data)
        reorder_rows(rank, routing, row_bytes, memory, out->data, true);
    return MS_OK;
}

/* The rows at their experts' rank, in order (expert, source). */
static const ms_local *sorted_rows(const ms_op_call *call)
{
    return call->node->inverse ? call->in[0] : call->out[0];
}

static ms_status exchange_rows(ms_rank *rank, const ms_op_call *call,
                               const ms_transfer *transfer, void *rows)
{
    const ms_local *sorted = sorted_rows(call);
    if (call->routing->num_experts == 1) /* nothing to sort */
        return move_rows(rank, call, *transfer, rows, sorted->data);
    void *memory;
    double bytes = (double)ms_lower_bytes(sorted, sorted->count);
    MS_TRY(ms_rank_workspace(rank, bytes, &memory));
    ms_status status = move_rows(rank, call, *transfer, rows, memory);
    ms_rank_release_workspace(rank, bytes, memory);
    return status;
}

/* Moves `rows` at their tokens' rank, from which the experts' differ in order alone. */
static ms_status exchange(ms_rank *rank, const ms_op_call *call, void *rows)
{
    ms_node_comm comm;
    bool sends = ms_node_communicates(call->program, call->node, &comm);
    ms_transfer transfer = {0};
    if (sends) {
        transfer = ms_lower_transfer(call, &comm);
        transfer.kind = MS_TRANSFER_ALL_TO_ALL;
    }
    if (!rank->backend->has_values)
        return sends ? ms_lower_carry_out(rank, &transfer) : MS_OK;
    const ms_local *sorted = sorted_rows(call);
    bool inverse = call->node->inverse;
    assert(sorted->shape[0] == call->routing->num_rows);
    if (sends)
        return exchange_rows(rank, call, &transfer, rows);
    if (sorted->count > 0)
        rank->backend->arrays->copy(rank->device, inverse ? rows : sorted->data,
                                    inverse ? sorted->data : rows,
                                    ms_lower_bytes(sorted, sorted->count));
    return MS_OK;
}

/* Copies the rows of tokens, which lie close together, to where each expert has room for
 * those of zeros behind them, or back. */
static void space_rows(const ms_rank *rank, const ms_op_call *call, char *close,
                       char *spaced)
{
    const ms_routing *routing = call->routing;
    const ms_array_ops *arrays = rank->backend->arrays;
    const ms_local *in = call->in[0];
    long width = ms_local_last(in);
    for (long i = 0; i < routing->num_sources * routing->num_experts; i++) {
        size_t bytes = ms_lower_bytes(in, routing->kept[i] * width);
        long empty = (routing->sent[i] - routing->kept[i]) * width;
        bool back = call->node->inverse;
        if (bytes > 0)
            arrays->copy(rank->device, back ? close : spaced, back ? spaced : close,
                         bytes);
        if (!back && empty > 0)
            arrays->fill(rank->device, (ms_scalar)in->scalar, spaced + bytes, 0.0, empty);
        close += bytes;
        spaced += bytes + ms_lower_bytes(in, empty);
    }
}

ms_status ms_lower_exchange(ms_rank *rank, const ms_op_call *call)
{
    const ms_routing *routing = call->routing;
    bool inverse = call->node->inverse;
    char *rows = inverse ? call->out[0]->data : call->in[0]->data, *spaced;
    if (!rank->backend->has_values || routing->kept == routing->sent)
        return exchange(rank, call, rows);
    long num = 0;
    for (long i = 0; i < routing->num_sources * routing->num_experts; i++)
        num += routing->sent[i];
    double bytes = (double)ms_lower_bytes(call->in[0], num * ms_local_last(call->in[0]));
    void *memory;
    MS_TRY(ms_rank_workspace(rank, bytes, &memory));
    spaced = memory;
    if (!inverse)
        space_rows(rank, call, rows, spaced);
    ms_status status = exchange(rank, call, spaced);
    if (inverse && status == MS_OK)
        space_rows(rank, call, rows, spaced);
    ms_rank_release_workspace(rank, bytes, memory);
    return status;
}
