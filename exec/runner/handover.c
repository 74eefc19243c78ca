/* Passes activations and their gradients between pipeline stages: sends them to another
 * rank, or stores them for a stage of the same rank. */
#include "exec/runner/rank_run.h"

#include "sim/simulate/move_names.h"

#include <assert.h>
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

static bool is_end(const ms_rank_run *r, const ms_rank_stage *stage, bool last)
{
    int num = ms_schedule_model_stages(&r->rank.planned->schedule->shape);
    return stage->model_stage == (last ? num - 1 : 0);
}

/* A message from stage `from` of the schedule: activations to the next stage, or gradients
 * to the previous one. */
typedef struct message {
    int from, microbatch;
    bool gradient;
} message;

static ms_transfer transfer_of(const ms_rank_run *r, message m, long peer, double bytes)
{
    const ms_rank *rank = &r->rank;
    ms_scalar scalar = rank->precision.real;
    return (ms_transfer){.scalar = (unsigned char)scalar,
                         .stream = MS_STREAM_SEND,
                         .peer = peer,
                         .tag = tag_of(r, m.from, m.microbatch, m.gradient),
                         .count = (long)(bytes / (double)ms_scalar_bytes(scalar)),
                         .name = m.gradient ? MS_MOVE_GRADIENTS : MS_MOVE_ACTIVATIONS,
                         .predicted_s = rank->planned->pipeline.send_s};
}

/* ---- receiving ---- */

static double arriving_bytes(const ms_rank_stage *stage, bool gradient)
{
    if (stage->num_blocks == 0)
        return stage->passed_bytes;
    const ms_rank_block *block = &stage->blocks[gradient ? stage->num_blocks - 1 : 0];
    const ms_program *program = block->plan->program;
    return block->shapes[gradient ? program->output_gradient : program->input].bytes;
}

/* Where a message arrives; its old content has been copied by kernels enqueued so far. */
static void *arrival_buffer(const ms_rank_run *r, bool gradient, double bytes)
{
    double half = r->receive_bytes / 2.0;
    assert(bytes <= half || !r->rank.backend->has_values);
    return r->receive_buffer == NULL || !gradient
               ? r->receive_buffer
               : (char *)r->receive_buffer + (long)half;
}

/* Starts to receive a message of another rank, unless that was done ahead. */
static ms_status start_receive(ms_rank_run *r, message m, double bytes)
{
    ms_rank *rank = &r->rank;
    ms_early_receive *early = &r->early[m.gradient];
    if (early->is_started)
        return MS_OK;
    ms_transfer transfer = transfer_of(r, m, peer_of(r, m.from), bytes);
    transfer.kind = MS_TRANSFER_RECEIVE;
    transfer.stream = MS_STREAM_RECEIVE;
    transfer.receive = arrival_buffer(r, m.gradient, bytes);
    ms_event buffer_is_free =
        rank->backend->has_values ? rank->backend->mark(rank->device) : 0;
    early->is_started = true;
    return rank->backend->start(rank->cx, rank->device, &transfer, &buffer_is_free, 1,
                                &early->done);
}

static ms_status receive(ms_walk_run *w, message m, ms_handed *out)
{
    ms_rank *rank = &w->r->rank;
    ms_early_receive *early = &w->r->early[m.gradient];
    double start_s = ms_rank_run_clock(w->r);
    MS_TRY(start_receive(w->r, m, out->bytes));
    early->is_started = false;
    MS_TRY(ms_rank_allocate(rank, MS_MEMORY_ACTIVATIONS, out->bytes, &out->data));
    if (!rank->backend->has_values) {
        ms_walk_run_arrives(w, early->done);
        return MS_OK;
    }
    MS_TRY(rank->backend->wait(rank->cx, rank->device, early->done));
    rank->backend->arrays->copy(rank->device, out->data,
                                arrival_buffer(w->r, m.gradient, out->bytes),
                                (size_t)out->bytes);
    ms_rank_run_record(
        w->r,
        (ms_recorded){.stream = MS_STREAM_RECEIVE,
                      .kind = MS_TASK_RECEIVE,
                      .name = m.gradient ? MS_MOVE_GRADIENTS : MS_MOVE_ACTIVATIONS,
                      .predicted_s = NAN,
                      .bytes = out->bytes,
                      .waits = true},
        start_s);
    return MS_OK;
}

/* Starts the receive of a forward or of a backward of the rank; *starts: there is one. */
static ms_status start_half(ms_rank_run *r, int stage, int microbatch, bool gradient,
                            bool *starts)
{
    const ms_rank_stage *to = ms_rank_run_stage(r, stage);
    message m = {stage + (gradient ? 1 : -1), microbatch, gradient};
    if (is_end(r, to, gradient) || rank_of(r, m.from) == r->pipeline_rank)
        return MS_OK;
    *starts = true;
    return start_receive(r, m, arriving_bytes(to, gradient));
}

ms_status ms_receive_ahead(ms_rank_run *r)
{
    const ms_schedule *schedule = r->rank.planned->schedule;
    int end = schedule->first_action[r->pipeline_rank + 1];
    bool starts = r->early[0].is_started || r->early[1].is_started;
    for (int i = r->action + 1; i < end && !starts && r->rank.backend->has_values; i++) {
        const ms_action *a = &schedule->actions[i];
        bool overlap = a->kind == MS_OVERLAP;
        if (a->kind == MS_BACKWARD_WEIGHT)
            continue;
        MS_TRY(start_half(r, a->stage, a->microbatch, !overlap && a->kind != MS_FORWARD,
                          &starts));
        if (overlap)
            MS_TRY(
                start_half(r, a->backward_stage, a->backward_microbatch, true, &starts));
    }
    return MS_OK;
}

/* Takes a walk's input from another rank, or from a stage of the same rank. */
static ms_status take_input(ms_walk_run *w, ms_handed *out)
{
    bool gradient = w->pass != MS_BLOCK_PASS_FORWARD;
    ms_rank_run *r = w->r;
    if (is_end(r, w->stage, gradient))
        return MS_OK;
    message m = {w->stage->stage + (gradient ? 1 : -1), w->flight->microbatch, gradient};
    *out = (ms_handed){true, NULL, arriving_bytes(w->stage, gradient)};
    if (rank_of(r, m.from) != r->pipeline_rank)
        return receive(w, m, out);
    ms_handed *stored =
        slot_of(r, gradient ? r->gradients : r->activations, m.from, m.microbatch);
    *out = *stored;
    *stored = (ms_handed){0};
    ms_ledger_add(&r->rank.ledger, MS_MEMORY_ACTIVATIONS, out->bytes);
    ms_ledger_add_workspace(&r->rank.ledger, -out->bytes);
    return MS_OK;
}

ms_status ms_receive_for(ms_walk_run *w, ms_handed *out)
{
    MS_TRY(take_input(w, out));
    return ms_receive_ahead(w->r);
}

ms_status ms_receive_for_pair(ms_walk_run *forward, ms_walk_run *backward)
{
    MS_TRY(take_input(forward, &forward->carried));
    MS_TRY(take_input(backward, &backward->carried));
    MS_TRY(ms_receive_ahead(forward->r));
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
           !is_end(w->r, w->stage, w->pass == MS_BLOCK_PASS_FORWARD);
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
    message m = {w->stage->stage, w->flight->microbatch,
                 w->pass != MS_BLOCK_PASS_FORWARD};
    ms_transfer transfer = transfer_of(w->r, m, peer_of(w->r, to), w->carried.bytes);
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
