/* Gathers of a block's parameters, and addresses of its parameters and gradients. */
#include "exec/params/unit_priv.h"

#include "sim/simulate/move_names.h"

#include <assert.h>

ms_status ms_unit_start(ms_unit_move *move, const ms_segment *segment,
                        ms_transfer transfer)
{
    ms_rank *rank = move->rank;
    transfer.predicted_s = move->predicted_s[segment->is_expert];
    move->predicted_s[segment->is_expert] = 0.0;
    if (!rank->backend->has_values && transfer.predicted_s <= 0.0)
        return MS_OK;
    return rank->backend->start(rank->cx, rank->device, &transfer, move->after,
                                move->num_after, move->done);
}

/* ---- buffers ---- */

static ms_status take_buffer(ms_rank *rank, ms_param_unit *unit)
{
    ms_unit_buffers *buffers = unit->buffers;
    assert(buffers != NULL);
    int buffer = 0;
    while (buffer < MS_MAX_BUFFERS && buffers->holder[buffer] != NULL)
        buffer++;
    assert(buffer < MS_MAX_BUFFERS);
    if (buffer >= MS_FIXED_BUFFERS)
        MS_TRY(ms_unit_buffer_open(rank, buffers, buffer));
    buffers->holder[buffer] = unit;
    unit->buffer = buffer;
    return MS_OK;
}

void ms_unit_release(ms_rank *rank, ms_param_unit *unit)
{
    if (unit->num_users == 0 || --unit->num_users > 0)
        return;
    unit->buffers->holder[unit->buffer] = NULL;
    if (unit->buffer >= MS_FIXED_BUFFERS)
        ms_unit_buffer_close(rank, unit->buffers, unit->buffer);
}

/* ---- gathers ---- */

/* Address to which a segment's whole parameters are gathered. */
static void *gathered_segment(const ms_param_unit *unit, int segment)
{
    const ms_segment *s = unit->segments[segment];
    if (unit->sharding == MS_ZERO_3)
        return ms_unit_at(MS_SCALAR_BYTE,
                          unit->buffers->params[unit->buffer][s->is_expert],
                          unit->buffer_byte[segment]);
    return unit->sharding == MS_ZERO_3_NO_RESHARD ? s->whole : s->params;
}

/* The transfer of a segment's shards to `whole`, in which this rank's has its place. */
static ms_transfer gather_of(const ms_param_unit *unit, const ms_segment *s, void *whole)
{
    ms_scalar type = ms_segment_gather_type(unit, s);
    return (ms_transfer){.kind = MS_TRANSFER_ALL_GATHER,
                         .scalar = (unsigned char)type,
                         .group = (unsigned char)s->shard_group,
                         .stream = MS_STREAM_GATHER,
                         .send = ms_unit_at(type, whole, s->own.first),
                         .receive = whole,
                         .count = s->is_coded ? s->shard_bytes : ms_range_length(s->own),
                         .name = MS_MOVE_GATHER};
}

static void convert_own(const ms_unit_move *move, const ms_segment *s, void *whole)
{
    ms_scalar type = ms_segment_gather_type(move->unit, s);
    ms_unit_convert(move->rank, &(ms_conversion){
                                    .to_scalar = type,
                                    .from_scalar = ms_segment_param_type(move->unit, s),
                                    .to = ms_unit_at(type, whole, s->own.first),
                                    .from = ms_segment_param(move->unit, s, s->own.first),
                                    .count = ms_range_length(s->own),
                                });
}

/* Sets the other ranks' shards of parameters to those that `whole` has in the type of
 * messages. */
static void convert_others(const ms_unit_move *move, const ms_segment *s, void *whole)
{
    const ms_range others[2] = {{0, s->own.first}, {s->own.end, s->count}};
    ms_scalar type = ms_segment_gather_type(move->unit, s);
    for (int i = 0; i < 2; i++) {
        ms_unit_convert(move->rank,
                        &(ms_conversion){
                            .to_scalar = ms_segment_param_type(move->unit, s),
                            .from_scalar = type,
                            .to = ms_segment_param(move->unit, s, others[i].first),
                            .from = ms_unit_at(type, whole, others[i].first),
                            .count = ms_range_length(others[i]),
                        });
    }
}

/* Gathers parameters that stay whole between steps, in a narrower type than theirs: done
 * on return. */
static ms_status gather_narrowed(ms_unit_move *move, const ms_segment *s)
{
    ms_rank *rank = move->rank;
    double bytes =
        (double)s->count * (double)ms_scalar_bytes(ms_segment_gather_type(move->unit, s));
    void *whole;
    MS_TRY(ms_rank_workspace(rank, bytes, &whole));
    convert_own(move, s, whole);
    ms_status status = ms_unit_start(move, s, gather_of(move->unit, s, whole));
    if (status == MS_OK)
        status = rank->backend->wait(rank->cx, rank->device, *move->done);
    if (status == MS_OK)
        convert_others(move, s, whole);
    ms_rank_release_workspace(rank, bytes, whole);
    return status;
}

static ms_status gather_segment(ms_unit_move *move, int segment)
{
    const ms_param_unit *unit = move->unit;
    const ms_segment *s = unit->segments[segment];
    void *whole = gathered_segment(unit, segment);
    bool is_narrowed =
        ms_segment_param_type(unit, s) != ms_segment_gather_type(unit, s) &&
        move->rank->backend->has_values;
    if (is_narrowed && whole == s->params)
        return gather_narrowed(move, s);
    ms_transfer transfer = gather_of(unit, s, whole);
    if (ms_segment_is_quantized(s)) {
        MS_TRY(ms_unit_quantize(move->rank, unit, segment, &transfer));
        return ms_unit_start(move, s, transfer);
    }
    if (is_narrowed)
        convert_own(move, s, whole);
    else
        transfer.send = ms_segment_param(unit, s, s->own.first);
    return ms_unit_start(move, s, transfer);
}

/* Gathers a unit's own segments; with ZeRO-3 also the tied matrix that a head borrows. */
static ms_status gather_segments(ms_unit_move *move)
{
    const ms_param_unit *unit = move->unit;
    int first = unit->sharding == MS_ZERO_3 ? 0 : unit->num_borrowed;
    for (int i = first; i < unit->num_segments; i++)
        if (unit->segments[i]->num_shards > 1)
            MS_TRY(gather_segment(move, i));
    return MS_OK;
}

static bool has_shards(const ms_param_unit *unit)
{
    for (int i = 0; i < unit->num_segments; i++)
        if (unit->segments[i]->num_shards > 1)
            return true;
    return false;
}

ms_status ms_unit_gather(ms_rank *rank, ms_param_unit *unit, const ms_event *after,
                         int num_after, ms_event *done)
{
    *done = 0;
    if (!has_shards(unit))
        return MS_OK;
    bool by_use = unit->sharding == MS_ZERO_3;
    if (by_use && unit->num_users++ == 0)
        MS_TRY(take_buffer(rank, unit));
    if (by_use && unit->num_users > 1 && rank->backend->has_values) {
        *done = unit->gathered;
        return MS_OK;
    }
    const ms_state_move *predicted = unit->options.ops->gather;
    ms_unit_move move = {rank,  unit,      {predicted[0].seconds, predicted[1].seconds},
                         after, num_after, done};
    ms_status status = gather_segments(&move);
    unit->is_quantized = true;
    unit->gathered = *done;
    return status;
}

/* ---- addresses ---- */

void *ms_unit_whole_params(const ms_param_unit *unit, int segment)
{
    const ms_segment *s = unit->segments[segment];
    if (s->num_shards <= 1 || unit->sharding < MS_ZERO_3)
        return s->params;
    if (unit->sharding == MS_ZERO_3_NO_RESHARD)
        return s->whole;
    return unit->num_users > 0 ? gathered_segment(unit, segment) : NULL;
}

static void *whole_grads(const ms_param_unit *unit, int segment)
{
    const ms_segment *s = unit->segments[segment];
    if (!ms_segment_shares_gradients(unit, s))
        return s->grads;
    if (unit->buffers == NULL || unit->buffers->gradient_holder != unit)
        return NULL;
    return ms_unit_at(unit->precision.comm, unit->buffers->grads[s->is_expert],
                      unit->buffer_first[segment]);
}

static void bind(ms_local *cell, ms_scalar scalar, void *first, long element)
{
    cell->scalar = (unsigned char)scalar;
    cell->data = ms_unit_at(scalar, first, element);
}

void ms_unit_bind(const ms_param_unit *unit, ms_local *cells)
{
    const ms_precision *precision = &unit->precision;
    for (int i = 0; i < unit->num_tensors; i++) {
        const ms_unit_tensor *t = &unit->tensors[i];
        const ms_segment *s = unit->segments[t->segment];
        void *params = ms_unit_whole_params(unit, t->segment);
        bool as_stored = params == s->params;
        ms_scalar type =
            as_stored ? ms_segment_param_type(unit, s) : ms_segment_gather_type(unit, s);
        if (s->is_coded) /* decoded for each product */
            bind(&cells[t->weight], precision->real, NULL, t->first);
        else
            bind(&cells[t->weight], type, params, t->first);
        if (t->gradient >= 0) {
            bind(&cells[t->gradient],
                 ms_segment_shares_gradients(unit, s) ? precision->comm
                                                      : precision->gradient,
                 whole_grads(unit, t->segment), t->first);
        }
    }
}
