/* Gathers of a block's parameters, and addresses of its parameters and gradients. */
#include "exec/params/unit_priv.h"

#include "sim/simulate/move_names.h"

#include <assert.h>

ms_status ms_unit_start(ms_unit_move *move, const ms_segment *segment,
                        ms_transfer transfer)
{
    ms_rank *rank = move->rank;
    const ms_precision *precision = &move->unit->precision;
    bool gathers = transfer.kind == MS_TRANSFER_ALL_GATHER;
    ms_scalar weights = segment->shard_bytes > 0 ? MS_SCALAR_BYTE : precision->real;
    transfer.scalar = (unsigned char)(gathers ? weights : precision->gradient);
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

/* Gathers a unit's own segments; with ZeRO-3 also the tied matrix that a head borrows. */
static ms_status gather_segments(ms_unit_move *move)
{
    const ms_param_unit *unit = move->unit;
    int first = unit->sharding == MS_ZERO_3 ? 0 : unit->num_borrowed;
    for (int i = first; i < unit->num_segments; i++) {
        const ms_segment *s = unit->segments[i];
        if (s->num_shards <= 1)
            continue;
        ms_transfer transfer = {.kind = MS_TRANSFER_ALL_GATHER,
                                .group = (unsigned char)s->shard_group,
                                .stream = MS_STREAM_GATHER,
                                .send = ms_segment_param(unit, s, s->own.first),
                                .receive = gathered_segment(unit, i),
                                .count = s->is_coded ? s->shard_bytes
                                                     : ms_range_length(s->own),
                                .name = MS_MOVE_GATHER};
        if (ms_segment_is_quantized(s))
            MS_TRY(ms_unit_quantize(move->rank, unit, i, &transfer));
        MS_TRY(ms_unit_start(move, s, transfer));
    }
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
    if (!ms_shards_grads(unit->sharding) || s->num_shards <= 1)
        return s->grads;
    if (unit->buffers == NULL || unit->buffers->gradient_holder != unit)
        return NULL;
    return ms_unit_at(unit->precision.gradient, unit->buffers->grads[s->is_expert],
                      unit->buffer_first[segment]);
}

void ms_unit_bind(const ms_param_unit *unit, ms_local *cells)
{
    for (int i = 0; i < unit->num_tensors; i++) {
        const ms_unit_tensor *t = &unit->tensors[i];
        void *params = unit->segments[t->segment]->is_coded
                           ? NULL
                           : ms_unit_whole_params(unit, t->segment);
        cells[t->weight].data = ms_unit_at(unit->precision.real, params, t->first);
        if (t->gradient >= 0)
            cells[t->gradient].data = ms_unit_at(unit->precision.gradient,
                                                 whole_grads(unit, t->segment), t->first);
    }
}
