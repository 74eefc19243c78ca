/* Passes activations and their gradients between pipeline stages: sends them to another
 * rank, or stores them for a stage of the same rank. */
#include "exec/runner/rank_run.h"

#include "sim/simulate/move_names.h"

#include <math.h>
#include <string.h>

static long num_microbatches(const ms_rank_run *r)
{
    return ms_plan_microbatches(r->rank.planned->plan);
}

static ms_handed *slot_of(ms_rank_run *r, ms_handed *table, int stage, int microbatch)
{
    return &table[stage * num_microbatches(r) + microbatch];
}

static int tag_of(const ms_rank_run *r, int stage, int microbatch, bool gradient)
{
    return (int)(2 * (stage * num_microbatches(r) + microbatch)) + (gradient ? 1 : 0);
}

static int rank_of(const ms_rank_run *r, int stage)
{
    return ms_schedule_rank(&r->rank.planned->schedule->shape, stage);
}

static long peer_of(const ms_rank_run *r, int stage)
{
    return r->rank.world->members[MS_TRAFFIC_PP][r->rank.place->rank]
        .ranks[rank_of(r, stage)];
}

static bool is_end(const ms_walk_run *w, bool last)
{
    int num = ms_schedule_model_stages(&w->r->rank.planned->schedule->shape);
    return w->stage->model_stage == (last ? num - 1 : 0);
}

static ms_transfer transfer_of(const ms_walk_run *w, int from_stage, long peer,
                               double bytes)
{
    bool gradient = w->pass != MS_BLOCK_PASS_FORWARD;
    const ms_rank *rank = &w->r->rank;
    ms_scalar scalar = rank->precision.real;
    return (ms_transfer){.scalar = (unsigned char)scalar,
                         .stream = MS_STREAM_SEND,
                         .peer = peer,
                         .tag = tag_of(w->r, from_stage, w->flight->microbatch, gradient),
                         .count = (long)(bytes / (double)ms_scalar_bytes(scalar)),
                         .name = gradient ? MS_MOVE_GRADIENTS : MS_MOVE_ACTIVATIONS,
                         .predicted_s = rank->planned->pipeline.send_s};
}

/* ---- receiving ---- */

static ms_status receive(ms_walk_run *w, int from, ms_handed *out)
{
    ms_rank *rank = &w->r->rank;
    ms_transfer transfer = transfer_of(w, from, peer_of(w->r, from), out->bytes);
    ms_event done = 0;
    transfer.kind = MS_TRANSFER_RECEIVE;
    transfer.stream = MS_STREAM_RECEIVE;
    transfer.receive = w->r->receive_buffer;
    /* event after which the buffer's old content was copied and it may be overwritten */
    ms_event buffer_is_free =
        rank->backend->has_values ? rank->backend->mark(rank->device) : 0;
    double start_s = ms_rank_run_clock(w->r);
    MS_TRY(rank->backend->start(rank->cx, rank->device, &transfer, &buffer_is_free, 1,
                                &done));
    MS_TRY(ms_rank_allocate(rank, MS_MEMORY_ACTIVATIONS, out->bytes, &out->data));
    if (!rank->backend->has_values) {
        ms_walk_run_arrives(w, done);
        return MS_OK;
    }
    MS_TRY(rank->backend->wait(rank->cx, rank->device, done));
    rank->backend->arrays->copy(rank->device, out->data, w->r->receive_buffer,
                                (size_t)out->bytes);
    ms_rank_run_record(w->r,
                       (ms_recorded){.stream = MS_STREAM_RECEIVE,
                                     .kind = MS_TASK_RECEIVE,
                                     .name = transfer.name,
                                     .predicted_s = NAN,
                                     .bytes = out->bytes,
                                     .waits = true},
                       start_s);
    return MS_OK;
}

static double arriving_bytes(const ms_walk_run *w)
{
    if (w->stage->num_blocks == 0)
        return w->stage->passed_bytes;
    const ms_rank_block *block = ms_walk_run_block(w, 0);
    const ms_program *program = block->plan->program;
    bool forward = w->pass == MS_BLOCK_PASS_FORWARD;
    return block->shapes[forward ? program->input : program->output_gradient].bytes;
}

ms_status ms_receive_for(ms_walk_run *w, ms_handed *out)
{
    bool forward = w->pass == MS_BLOCK_PASS_FORWARD;
    if (is_end(w, !forward))
        return MS_OK;
    int from = w->stage->stage + (forward ? -1 : 1);
    *out = (ms_handed){true, NULL, arriving_bytes(w)};
    if (rank_of(w->r, from) != w->r->pipeline_rank)
        return receive(w, from, out);
    ms_handed *stored = slot_of(w->r, forward ? w->r->activations : w->r->gradients, from,
                                w->flight->microbatch);
    *out = *stored;
    *stored = (ms_handed){0};
    ms_ledger_add(&w->r->rank.ledger, MS_MEMORY_ACTIVATIONS, out->bytes);
    ms_ledger_add_workspace(&w->r->rank.ledger, -out->bytes);
    return MS_OK;
}

ms_status ms_receive_for_pair(ms_walk_run *forward, ms_walk_run *backward)
{
    MS_TRY(ms_receive_for(forward, &forward->carried));
    MS_TRY(ms_receive_for(backward, &backward->carried));
    int num = forward->num_arrived;
    for (int i = 0; i < backward->num_arrived; i++)
        ms_walk_run_arrives(forward, backward->arrived[i]);
    for (int i = 0; i < num; i++)
        ms_walk_run_arrives(backward, forward->arrived[i]);
    forward->received = backward->received = true;
    return MS_OK;
}

/* ---- sending ---- */

static void add_unfinished_send(ms_rank_run *r, ms_event done, ms_handed what,
                                const char *name)
{
    ms_sent *sent = r->idle_sent;
    if (sent == NULL)
        sent = MS_NEW(r->rank.cx->arena, ms_sent);
    else
        r->idle_sent = sent->next;
    *sent = (ms_sent){done, what, name, r->sent};
    r->sent = sent;
}

static bool leaves(const ms_walk_run *w)
{
    return w->pass != MS_BLOCK_PASS_BACKWARD_WEIGHT &&
           !is_end(w, w->pass == MS_BLOCK_PASS_FORWARD);
}

void ms_result_leaves(ms_walk_run *w)
{
    if (!leaves(w))
        return;
    ms_ledger *ledger = &w->r->rank.ledger;
    ms_ledger_add(ledger, MS_MEMORY_ACTIVATIONS, -w->carried.bytes);
    ms_ledger_add_workspace(ledger, w->carried.bytes);
}

static ms_status send(ms_walk_run *w, int to, ms_event after)
{
    ms_rank *rank = &w->r->rank;
    ms_transfer transfer =
        transfer_of(w, w->stage->stage, peer_of(w->r, to), w->carried.bytes);
    ms_event done = 0;
    transfer.kind = MS_TRANSFER_SEND;
    transfer.send = w->carried.data;
    MS_TRY(rank->backend->start(rank->cx, rank->device, &transfer, &after, 1, &done));
    add_unfinished_send(w->r, done, w->carried, transfer.name);
    return MS_OK;
}

ms_status ms_send_from(ms_walk_run *w, ms_event after)
{
    bool forward = w->pass == MS_BLOCK_PASS_FORWARD;
    if (!leaves(w))
        return MS_OK;
    int to = w->stage->stage + (forward ? 1 : -1);
    if (rank_of(w->r, to) != w->r->pipeline_rank)
        return send(w, to, after);
    *slot_of(w->r, forward ? w->r->activations : w->r->gradients, w->stage->stage,
             w->flight->microbatch) = w->carried;
    return MS_OK;
}

static ms_status wait_until_sent(ms_rank_run *r, const ms_sent *sent)
{
    const ms_rank *rank = &r->rank;
    double start_s = ms_rank_run_clock(r);
    MS_TRY(rank->backend->wait(rank->cx, rank->device, sent->done));
    ms_rank_run_record(r,
                       (ms_recorded){.stream = MS_STREAM_SEND,
                                     .kind = MS_TASK_SEND,
                                     .name = sent->name,
                                     .predicted_s = NAN,
                                     .bytes = sent->what.bytes,
                                     .waits = true},
                       start_s);
    return MS_OK;
}

ms_status ms_sends_end(ms_rank_run *r)
{
    ms_rank *rank = &r->rank;
    while (r->sent != NULL) {
        ms_sent *sent = r->sent;
        if (rank->backend->has_values)
            MS_TRY(wait_until_sent(r, sent));
        ms_rank_release_workspace(rank, sent->what.bytes, sent->what.data);
        r->sent = sent->next;
        sent->next = r->idle_sent;
        r->idle_sent = sent;
    }
    return MS_OK;
}
