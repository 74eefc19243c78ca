/* Exchange of MoE token rows. A dispatch sends rows, then sorts received ones from order
 * (source, expert) to (expert, source). A combine sorts rows back, then returns them. */
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
    long *sent = MS_NEW_ARRAY(arena, num_experts, long),
         *counts = MS_NEW_ARRAY(arena, num_experts, long);
    ms_routing *routing = MS_NEW(arena, ms_routing);
    *routing = (ms_routing){.num_sources = (int)ep,
                            .num_experts = num_experts / ep,
                            .counts = counts,
                            .sent = sent};
    *out = routing;
    if (!rank->backend->has_values) {
        for (long e = 0; e < num_experts; e++)
            sent[e] = counts[e] = choice->count / num_experts;
        routing->num_rows = choice->count;
        return MS_OK;
    }
    MS_TRY(
        rank->backend->arrays->count(rank->cx, rank->device, choice, sent, num_experts));
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

/* Exchanges token rows. `memory`: the rows at their experts' rank in order (source,
 * expert), received by a dispatch and sent by a combine. */
static ms_status move_rows(ms_rank *rank, const ms_op_call *call, ms_transfer transfer,
                           void *memory)
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
    transfer.send = inverse ? memory : in->data;
    transfer.receive = inverse ? out->data : memory;
    transfer.send_counts = inverse ? sparse : dense;
    transfer.receive_counts = inverse ? dense : sparse;
    transfer.count = out->count;
    MS_TRY(ms_lower_carry_out(rank, &transfer));
    if (!inverse && memory != out->data)
        reorder_rows(rank, routing, row_bytes, memory, out->data, true);
    return MS_OK;
}

static ms_status exchange_rows(ms_rank *rank, const ms_op_call *call,
                               const ms_transfer *transfer)
{
    const ms_local *sorted = call->node->inverse ? call->in[0] : call->out[0];
    assert(sorted->shape[0] == call->routing->num_rows);
    if (call->routing->num_experts == 1) /* nothing to sort */
        return move_rows(rank, call, *transfer, sorted->data);
    void *memory;
    double bytes = (double)ms_lower_bytes(sorted, sorted->count);
    MS_TRY(ms_rank_workspace(rank, bytes, &memory));
    ms_status status = move_rows(rank, call, *transfer, memory);
    ms_rank_release_workspace(rank, bytes, memory);
    return status;
}

ms_status ms_lower_exchange(ms_rank *rank, const ms_op_call *call)
{
    ms_node_comm comm;
    if (ms_node_communicates(call->program, call->node, &comm)) {
        ms_transfer transfer = ms_lower_transfer(call, &comm);
        transfer.kind = MS_TRANSFER_ALL_TO_ALL;
        return rank->backend->has_values ? exchange_rows(rank, call, &transfer)
                                         : ms_lower_carry_out(rank, &transfer);
    }
    assert(call->in[0]->count == call->out[0]->count);
    if (rank->backend->has_values && call->out[0]->count > 0)
        rank->backend->arrays->copy(rank->device, call->out[0]->data, call->in[0]->data,
                                    ms_lower_bytes(call->out[0], call->out[0]->count));
    return MS_OK;
}
