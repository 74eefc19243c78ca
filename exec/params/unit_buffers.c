/* Buffers for gathered parameters and gradients, which a rank's blocks use in turn. */
#include "exec/params/unit_priv.h"

/* Enlarges the buffers, dense and expert, to a unit's sizes, as the memory model does. */
static void note_largest(const ms_rank *rank, ms_unit_buffers *buffers,
                         const ms_param_unit *unit)
{
    long buffer[2] = {0, 0}, gradient[2] = {0, 0}, shard[2] = {0, 0};
    long message[2] = {0, 0}, sent[2] = {0, 0};
    for (int i = 0; i < unit->num_segments; i++) {
        const ms_segment *segment = unit->segments[i];
        if (segment->num_shards <= 1)
            continue;
        buffer[segment->is_expert] += ms_segment_whole_bytes(unit, segment);
        if (ms_segment_is_quantized(segment))
            message[segment->is_expert] += segment->num_shards * segment->shard_bytes;
        if (segment->is_frozen)
            continue;
        gradient[segment->is_expert] += segment->count;
        shard[segment->is_expert] += ms_range_length(segment->own);
        sent[segment->is_expert] += ms_segment_sent_bytes(rank, segment);
    }
    for (int i = 0; i < 2; i++) {
        buffers->buffer_bytes[i] =
            buffer[i] > buffers->buffer_bytes[i] ? buffer[i] : buffers->buffer_bytes[i];
        buffers->message_bytes[i] = message[i] > buffers->message_bytes[i]
                                        ? message[i]
                                        : buffers->message_bytes[i];
        buffers->sent_bytes[i] =
            sent[i] > buffers->sent_bytes[i] ? sent[i] : buffers->sent_bytes[i];
        buffers->gradient_count[i] = gradient[i] > buffers->gradient_count[i]
                                         ? gradient[i]
                                         : buffers->gradient_count[i];
        buffers->shard_count[i] =
            shard[i] > buffers->shard_count[i] ? shard[i] : buffers->shard_count[i];
    }
}

static double workspace_bytes(const ms_rank *rank, const ms_unit_buffers *buffers,
                              int expert)
{
    long sent_bytes = buffers->sent_bytes[expert];
    return sent_bytes > 0 ? (double)sent_bytes
                          : (double)buffers->shard_count[expert] *
                                (double)ms_scalar_bytes(rank->precision.comm);
}

ms_status ms_unit_buffer_open(ms_rank *rank, ms_unit_buffers *buffers, int buffer)
{
    for (int expert = 0; expert < 2; expert++) {
        MS_TRY(ms_unit_allocate(rank, MS_MEMORY_GATHERED_PARAMS, MS_SCALAR_BYTE,
                                buffers->buffer_bytes[expert],
                                &buffers->params[buffer][expert]));
        MS_TRY(ms_unit_allocate(rank, MS_MEMORY_GATHERED_PARAMS, MS_SCALAR_BYTE,
                                buffers->message_bytes[expert],
                                &buffers->messages[buffer][expert]));
    }
    return MS_OK;
}

void ms_unit_buffer_close(ms_rank *rank, ms_unit_buffers *buffers, int buffer)
{
    for (int expert = 0; expert < 2; expert++) {
        ms_unit_free(rank, MS_MEMORY_GATHERED_PARAMS, MS_SCALAR_BYTE,
                     buffers->buffer_bytes[expert], &buffers->params[buffer][expert]);
        ms_unit_free(rank, MS_MEMORY_GATHERED_PARAMS, MS_SCALAR_BYTE,
                     buffers->message_bytes[expert], &buffers->messages[buffer][expert]);
    }
}

static ms_status open_gradients(ms_rank *rank, ms_unit_buffers *buffers)
{
    for (int expert = 0; expert < 2; expert++) {
        MS_TRY(ms_unit_allocate(rank, MS_MEMORY_GATHERED_PARAMS, rank->precision.comm,
                                buffers->gradient_count[expert],
                                &buffers->grads[expert]));
        MS_TRY(ms_unit_allocate(rank, MS_MEMORY_GATHERED_PARAMS, MS_SCALAR_BYTE,
                                buffers->sent_bytes[expert], &buffers->sent[expert]));
        MS_TRY(ms_rank_workspace(rank, workspace_bytes(rank, buffers, expert),
                                 &buffers->reduced[expert]));
    }
    return MS_OK;
}

static void close_gradients(ms_rank *rank, ms_unit_buffers *buffers)
{
    for (int expert = 0; expert < 2; expert++) {
        ms_unit_free(rank, MS_MEMORY_GATHERED_PARAMS, rank->precision.comm,
                     buffers->gradient_count[expert], &buffers->grads[expert]);
        ms_unit_free(rank, MS_MEMORY_GATHERED_PARAMS, MS_SCALAR_BYTE,
                     buffers->sent_bytes[expert], &buffers->sent[expert]);
        ms_rank_release_workspace(rank, workspace_bytes(rank, buffers, expert),
                                  buffers->reduced[expert]);
    }
}

/* Allocates a unit's gathered parameters for ZeRO-3 without reshard after forward. */
static ms_status open_whole(ms_rank *rank, ms_param_unit *unit)
{
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        ms_segment *segment = unit->segments[i];
        if (segment->num_shards > 1)
            MS_TRY(ms_unit_allocate(rank, MS_MEMORY_GATHERED_PARAMS, MS_SCALAR_BYTE,
                                    ms_segment_whole_bytes(unit, segment),
                                    &segment->whole));
    }
    return MS_OK;
}

static void close_whole(ms_rank *rank, const ms_param_unit *unit)
{
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        ms_segment *segment = unit->segments[i];
        if (segment->num_shards > 1)
            ms_unit_free(rank, MS_MEMORY_GATHERED_PARAMS, MS_SCALAR_BYTE,
                         ms_segment_whole_bytes(unit, segment), &segment->whole);
    }
}

ms_status ms_unit_buffers_make(ms_rank *rank, ms_param_unit *const *units, int num_units,
                               ms_unit_buffers **out)
{
    ms_sharding sharding = rank->planned->sharding;
    ms_unit_buffers *buffers = MS_NEW(rank->cx->arena, ms_unit_buffers);
    buffers->num_units = num_units;
    buffers->units = MS_NEW_ARRAY(rank->cx->arena, num_units, ms_param_unit *);
    for (int i = 0; i < num_units; i++) {
        note_largest(rank, buffers, units[i]);
        units[i]->buffers = buffers;
        buffers->units[i] = units[i];
    }
    *out = buffers;
    if (ms_shards_grads(sharding))
        MS_TRY(open_gradients(rank, buffers));
    for (int i = 0; i < MS_FIXED_BUFFERS && sharding == MS_ZERO_3; i++)
        MS_TRY(ms_unit_buffer_open(rank, buffers, i));
    for (int i = 0; i < num_units && sharding == MS_ZERO_3_NO_RESHARD; i++)
        MS_TRY(open_whole(rank, units[i]));
    return MS_OK;
}

void ms_unit_buffers_close(ms_rank *rank, ms_unit_buffers *buffers)
{
    ms_sharding sharding = rank->planned->sharding;
    if (ms_shards_grads(sharding))
        close_gradients(rank, buffers);
    for (int i = 0; i < MS_MAX_BUFFERS && sharding == MS_ZERO_3; i++)
        if (i < MS_FIXED_BUFFERS || buffers->holder[i] != NULL)
            ms_unit_buffer_close(rank, buffers, i);
    for (int i = 0; i < buffers->num_units && sharding == MS_ZERO_3_NO_RESHARD; i++)
        close_whole(rank, buffers->units[i]);
}
