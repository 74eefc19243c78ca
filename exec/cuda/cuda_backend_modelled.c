/* Transfers of a rank that executes alone (transport modelled): on its streams, in the
 * order of real ones, a kernel takes the time, the multiprocessors and the memory traffic
 * of each transfer and makes up what other ranks would have sent. */
#include "exec/cuda/cuda_backend_priv.h"

static ms_cuda_stream *stream_of(const ms_device_rank *d, const ms_transfer *t)
{
    bool has_own = t->stream >= MS_STREAM_TP && t->stream <= MS_STREAM_REDUCE;
    return d->stream[has_own ? t->stream : MS_STREAM_SEND];
}

/* Describes what the rank would receive: of a gather its own part repeated, of a reduction its own
 * part, of an exchange what it sends repeated, of a message nothing of its own. */
static void describe_data(const ms_device_rank *d, const ms_transfer *t,
                          ms_cuda_modelled *m)
{
    const ms_members *members = t->kind < MS_TRANSFER_SEND ? ms_cuda_members(d, t) : NULL;
    size_t bytes = ms_scalar_bytes((ms_scalar)t->scalar);
    m->to = t->receive;
    m->from = t->send;
    m->count = m->num_from = t->count;
    m->own_first = 0;
    if (t->kind == MS_TRANSFER_ALL_GATHER) {
        m->count = t->count * members->size;
        m->own_first = t->count * members->own;
    } else if (t->kind == MS_TRANSFER_REDUCE_SCATTER) {
        m->from = (const char *)t->send + (size_t)t->count * (size_t)members->own * bytes;
    } else if (t->kind == MS_TRANSFER_ALL_TO_ALL) {
        m->num_from = 0;
        for (int i = 0; i < members->size; i++)
            m->num_from += t->send_counts[i];
        m->own_first = -1;
    } else if (t->kind == MS_TRANSFER_RECEIVE) {
        m->num_from = 0;
        m->own_first = -1;
    }
}

/* In-place results: every element is read before it is written, by the same thread, only if
 * it stands where it is read. Others are read from a part that is not written. */
static bool writes_over_itself(const ms_cuda_modelled *m)
{
    return m->to == m->from && m->own_first == 0 && m->count == m->num_from;
}

/* ---- when transfers move ---- */

/* If more are unread, the oldest that have ended are read: events are few. */
#define MAX_OPEN_MOVES 512

static ms_status read_move(ms_ctx *cx, ms_device_rank *d, ms_cuda_move *m)
{
    const ms_cuda_moves *all = &d->moves;
    MS_TRY(d->driver->elapsed(cx, all->anchor, m->begin, &m->slice.start_s));
    MS_TRY(d->driver->elapsed(cx, all->anchor, m->end, &m->slice.end_s));
    m->slice.start_s += all->anchor_s;
    m->slice.end_s += all->anchor_s;
    ms_cuda_give_event(d, MS_CUDA_TIMES, m->begin);
    ms_cuda_give_event(d, MS_CUDA_TIMES, m->end);
    m->begin = m->end = NULL;
    return MS_OK;
}

static ms_status read_ended_moves(ms_ctx *cx, ms_device_rank *d)
{
    ms_cuda_moves *all = &d->moves;
    for (; all->first_open < all->num; all->first_open++) {
        bool ended = false;
        MS_TRY(d->driver->query(cx, all->moves[all->first_open].end, &ended));
        if (!ended)
            return MS_OK;
        MS_TRY(read_move(cx, d, &all->moves[all->first_open]));
    }
    return MS_OK;
}

/* Enqueues the transfer between two timed events. */
static ms_status enqueue_timed(ms_ctx *cx, ms_device_rank *d, ms_cuda_stream *stream,
                               const ms_transfer *t, const ms_cuda_modelled *m)
{
    ms_cuda_moves *all = &d->moves;
    if (all->num - all->first_open > MAX_OPEN_MOVES)
        MS_TRY(read_ended_moves(cx, d));
    MS_MAKE_ROOM(d->arena, all->moves, all->num, all->room, 256);
    ms_cuda_move *move = &all->moves[all->num];
    *move = (ms_cuda_move){.slice = ms_transfer_moves(t, 0.0, 0.0)};
    MS_TRY(ms_cuda_take_recorded(cx, d, MS_CUDA_TIMES, stream, &move->begin));
    all->num++;
    d->kernels->model_transfer(stream, m);
    return ms_cuda_take_recorded(cx, d, MS_CUDA_TIMES, stream, &move->end);
}

static void forget_moves(ms_device_rank *d)
{
    for (int i = d->moves.first_open; i < d->moves.num; i++) {
        ms_cuda_give_event(d, MS_CUDA_TIMES, d->moves.moves[i].begin);
        ms_cuda_give_event(d, MS_CUDA_TIMES, d->moves.moves[i].end);
    }
    d->moves.num = d->moves.first_open = 0;
}

ms_status ms_cuda_moves_begin(ms_ctx *cx, ms_device_rank *d)
{
    ms_cuda_moves *all = &d->moves;
    if (d->job->backend->transport != MS_CUDA_MODELLED)
        return MS_OK;
    forget_moves(d);
    if (all->anchor == NULL)
        MS_TRY(ms_cuda_take_event(cx, d, MS_CUDA_TIMES, &all->anchor));
    MS_TRY(d->driver->record(cx, all->anchor, d->compute));
    MS_TRY(ms_cuda_finish_event(cx, d, all->anchor));
    MS_TRY(d->driver->elapsed(cx, d->clock.anchor, all->anchor, &all->anchor_s));
    all->anchor_s += d->clock.anchor_s;
    return MS_OK;
}

ms_status ms_cuda_take_moves(ms_ctx *cx, ms_device_rank *d, ms_recorder *out)
{
    ms_cuda_moves *all = &d->moves;
    for (; all->first_open < all->num; all->first_open++) {
        ms_cuda_move *move = &all->moves[all->first_open];
        MS_TRY(ms_cuda_finish_event(cx, d, move->end));
        MS_TRY(read_move(cx, d, move));
    }
    for (int i = 0; i < all->num; i++)
        ms_recorder_add(out, all->moves[i].slice);
    return ms_cuda_moves_begin(cx, d);
}

void ms_cuda_moves_close(ms_device_rank *d)
{
    forget_moves(d);
    ms_cuda_give_event(d, MS_CUDA_TIMES, d->moves.anchor);
    d->moves.anchor = NULL;
}

/* ---- starting ---- */

ms_status ms_cuda_model_start(ms_ctx *cx, ms_device_rank *d, const ms_transfer *t,
                              const ms_event *after, int num_after, ms_event *done)
{
    ms_cuda_stream *stream = stream_of(d, t);
    for (int i = 0; i < num_after; i++)
        MS_TRY(ms_cuda_after(cx, d, stream, after[i]));
    MS_TRY(ms_cuda_after_compute(cx, d, stream));
    ms_cuda_modelled m = {.scalar = (ms_scalar)t->scalar,
                          .seconds = t->predicted_s,
                          .num_blocks = d->job->outer->held_sms,
                          .seed = ++d->num_modelled};
    bool is_message = t->kind >= MS_TRANSFER_SEND;
    bool of_stages = is_message && stream == d->stream[MS_STREAM_SEND];
    describe_data(d, t, &m);
    if (t->kind == MS_TRANSFER_SEND || writes_over_itself(&m))
        m.to = NULL;
    if (of_stages || t->kind == MS_TRANSFER_SEND)
        m.seconds = 0.0;
    if (m.seconds > 0.0)
        MS_TRY(enqueue_timed(cx, d, stream, t, &m));
    else if (m.to != NULL)
        d->kernels->model_transfer(stream, &m);
    return ms_cuda_point_make(cx, d, stream, t, done);
}

void ms_cuda_model_host(ms_device_rank *d, double seconds)
{
    if (seconds <= 0.0)
        return;
    d->kernels->model_transfer(d->compute,
                               &(ms_cuda_modelled){.seconds = seconds, .num_blocks = 1});
    ms_cuda_moved(d);
}
