/* Gathers of parameters in 8 or 4 bits (ZeRO++): each rank quantizes its shard, and
 * restores all shards, its own too, so that all ranks compute with the same weights. */
#include "exec/params/quantized.h"
#include "exec/params/unit_priv.h"

bool ms_segment_is_quantized(const ms_segment *segment)
{
    return segment->shard_bytes > 0 && !segment->is_coded;
}

static ms_quantized_bits bits_of(const ms_rank *rank)
{
    return rank->planned->plan->gather_bits;
}

void ms_segment_set_messages(const ms_rank *rank, const ms_param_unit *unit,
                             ms_segment *segment)
{
    if (bits_of(rank) != MS_NOT_QUANTISED && unit->sharding == MS_ZERO_3 &&
        segment->num_shards > 1)
        segment->shard_bytes =
            ms_quantized_bytes(bits_of(rank), ms_range_length(segment->own));
}

static unsigned char *messages_of(const ms_param_unit *unit, int segment)
{
    const ms_segment *s = unit->segments[segment];
    return ms_unit_at(MS_SCALAR_BYTE, unit->buffers->messages[unit->buffer][s->is_expert],
                      unit->message_byte[segment]);
}

/* Numbers, and the codes that stand for them. */
typedef struct coded {
    ms_scalar scalar;
    void *numbers;
    long count;
    unsigned char *codes;
} coded;

/* Quantizes, or restores. */
static ms_status convert(const ms_rank *rank, bool restores, const coded *c)
{
    const ms_array_ops *arrays = rank->backend->arrays;
    double values[MS_QUANTISED_BLOCK];
    for (long at = 0; at < c->count; at += MS_QUANTISED_BLOCK) {
        long left = c->count - at,
             num = left < MS_QUANTISED_BLOCK ? left : MS_QUANTISED_BLOCK;
        unsigned char *block = c->codes + ms_quantized_bytes(bits_of(rank), at);
        void *here = ms_unit_at(c->scalar, c->numbers, at);
        if (restores) {
            ms_quantized_read(bits_of(rank), block, num, values);
            MS_TRY(arrays->write(rank->cx, rank->device, c->scalar, here, values, num));
        } else {
            MS_TRY(arrays->read(rank->cx, rank->device, c->scalar, values, here, num));
            ms_quantized_write(bits_of(rank), values, num, block);
        }
    }
    return MS_OK;
}

ms_status ms_unit_quantize(const ms_rank *rank, const ms_param_unit *unit, int segment,
                           ms_transfer *transfer)
{
    const ms_segment *s = unit->segments[segment];
    long size = ms_range_length(s->own);
    transfer->scalar = MS_SCALAR_BYTE;
    transfer->count = s->shard_bytes;
    if (!rank->backend->has_values)
        return MS_OK;
    unsigned char *all = messages_of(unit, segment);
    unsigned char *own = all + s->own.first / size * s->shard_bytes;
    transfer->send = own;
    transfer->receive = all;
    return convert(rank, false,
                   &(coded){ms_segment_param_type(unit, s),
                            ms_segment_param(unit, s, s->own.first), size, own});
}

ms_status ms_unit_restore(const ms_rank *rank, ms_param_unit *unit)
{
    bool is_due = unit->is_quantized && unit->num_users > 0 && rank->backend->has_values;
    for (int i = 0; i < unit->num_segments && is_due; i++) {
        const ms_segment *s = unit->segments[i];
        ms_scalar type = ms_segment_gather_type(unit, s);
        long size = ms_range_length(s->own);
        for (long shard = 0; shard < s->num_shards && ms_segment_is_quantized(s);
             shard++) {
            void *to = ms_unit_at(type, ms_unit_whole_params(unit, i), shard * size);
            MS_TRY(convert(
                rank, true,
                &(coded){type, to, size, messages_of(unit, i) + shard * s->shard_bytes}));
        }
    }
    unit->is_quantized = false;
    return MS_OK;
}
