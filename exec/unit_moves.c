/* Parameters on their way to where they are used, and where a program finds them. */
#include "exec/unit_priv.h"

#include <assert.h>

ms_status ms_unit_start(ms_rank *rank, ms_transfer *transfer, double *predicted_s,
                        const ms_event *after, int num_after, ms_event *done)
{
    transfer->predicted_s = *predicted_s;
    *predicted_s = 0.0;
    if (!rank->backend->has_values && transfer->predicted_s <= 0.0)
        return MS_OK;
    return rank->backend->start(rank->cx, rank->device, transfer, after, num_after, done);
}

/* ---- rooms ---- */

static int take_room(ms_param_unit *unit)
{
    ms_unit_rooms *rooms = unit->rooms;
    assert(rooms != NULL && unit->num_gathered < 2);
    int room = rooms->holder[0] == NULL ? 0 : 1;
    assert(rooms->holder[room] == NULL); /* one unit at work, one ahead */
    rooms->holder[room] = unit;
    unit->rooms_held[unit->num_gathered++] = room;
    return room;
}

void ms_unit_release(ms_rank *rank, ms_param_unit *unit)
{
    (void)rank;
    if (unit->num_gathered == 0)
        return;
    unit->rooms->holder[unit->rooms_held[0]] = NULL;
    unit->rooms_held[0] = unit->rooms_held[1];
    unit->num_gathered--;
}

/* ---- gathers ---- */

/* Where the whole segment is gathered to. `room`: ZeRO 3. */
static void *destination(const ms_param_unit *unit, int segment, int room)
{
    const ms_segment *s = unit->segments[segment];
    if (unit->sharding == MS_ZERO_3)
        return ms_unit_at(unit, unit->rooms->params[room][s->is_expert],
                          unit->room_first[segment]);
    return unit->sharding == MS_ZERO_3_KEEP ? s->whole : s->params;
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
    const ms_state_move *moves = unit->options.ops->gather;
    double predicted_s[2] = {moves[0].seconds, moves[1].seconds};
    bool by_unit = unit->sharding == MS_ZERO_3;
    int room = by_unit ? take_room(unit) : 0;
    for (int i = by_unit ? 0 : unit->num_borrowed; i < unit->num_segments; i++) {
        ms_segment *s = unit->segments[i];
        if (s->num_shards <= 1)
            continue;
        ms_transfer transfer = {.kind = MS_TRANSFER_ALL_GATHER,
                                .group = (unsigned char)s->shard_group,
                                .stream = MS_STREAM_GATHER,
                                .send = ms_segment_param(unit, s, s->own.first),
                                .receive = destination(unit, i, room),
                                .count = s->own.end - s->own.first,
                                .name = "gather parameters"};
        MS_TRY(ms_unit_start(rank, &transfer, &predicted_s[s->is_expert], after,
                             num_after, done));
    }
    return MS_OK;
}

/* ---- where a program finds them ---- */

static void *whole_params(const ms_param_unit *unit, int segment)
{
    const ms_segment *s = unit->segments[segment];
    if (s->num_shards <= 1 || unit->sharding < MS_ZERO_3)
        return s->params;
    if (unit->sharding == MS_ZERO_3_KEEP)
        return s->whole;
    return unit->num_gathered > 0 ? destination(unit, segment, unit->rooms_held[0])
                                  : NULL;
}

static void *whole_grads(const ms_param_unit *unit, int segment)
{
    const ms_segment *s = unit->segments[segment];
    if (!ms_segment_shards_gradients(unit, s))
        return s->grads;
    if (unit->rooms == NULL || unit->rooms->gradient_holder != unit)
        return NULL;
    return ms_unit_at(unit, unit->rooms->grads[s->is_expert], unit->room_first[segment]);
}

void ms_unit_bind(const ms_param_unit *unit, ms_local *cells)
{
    for (int i = 0; i < unit->num_tensors; i++) {
        const ms_unit_tensor *t = &unit->tensors[i];
        cells[t->weight].data =
            ms_unit_at(unit, whole_params(unit, t->segment), t->first);
        if (t->gradient >= 0)
            cells[t->gradient].data =
                ms_unit_at(unit, whole_grads(unit, t->segment), t->first);
    }
}
