/* Gathers of parameters in 8 or 4 bits (ZeRO++): each rank quantizes its shard, and
 * restores all shards, its own too, so that all ranks compute with the same weights.
 * Reductions of gradients in 8 or 4 bits: each rank quantizes all shards, its own too,
 * sends each to its owner, and adds up what it gets. */
#include "exec/params/quantized.h"
#include "exec/params/unit_priv.h"

#include <string.h>

bool ms_segment_is_quantized(const ms_segment *segment)
{
    return segment->shard_bytes > 0 && !segment->is_coded;
}

static ms_quantized_bits gather_bits(const ms_rank *rank)
{
    return rank->planned->plan->gather_bits;
}

void ms_segment_set_messages(const ms_rank *rank, const ms_param_unit *unit,
                             ms_segment *segment)
{
    if (gather_bits(rank) != MS_NOT_QUANTISED && unit->sharding == MS_ZERO_3 &&
        segment->num_shards > 1)
        segment->shard_bytes =
            ms_quantized_bytes(gather_bits(rank), ms_range_length(segment->own));
}

static unsigned char *messages_of(const ms_param_unit *unit, int segment)
{
    const ms_segment *s = unit->segments[segment];
    return ms_unit_at(MS_SCALAR_BYTE, unit->buffers->messages[unit->buffer][s->is_expert],
                      unit->message_byte[segment]);
}

/* Numbers, and the codes that stand for them. */
typedef struct coded {
    ms_quantized_bits bits;
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
        unsigned char *block = c->codes + ms_quantized_bytes(c->bits, at);
        void *here = ms_unit_at(c->scalar, c->numbers, at);
        if (restores) {
            ms_quantized_read(c->bits, block, num, values);
            MS_TRY(arrays->write(rank->cx, rank->device, c->scalar, here, values, num));
        } else {
            MS_TRY(arrays->read(rank->cx, rank->device, c->scalar, values, here, num));
            ms_quantized_write(c->bits, values, num, block);
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
                   &(coded){gather_bits(rank), ms_segment_param_type(unit, s),
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
            MS_TRY(convert(rank, true,
                           &(coded){gather_bits(rank), type, to, size,
                                    messages_of(unit, i) + shard * s->shard_bytes}));
        }
    }
    unit->is_quantized = false;
    return MS_OK;
}

/* ---- reductions ---- */

static ms_quantized_bits reduce_bits(const ms_rank *rank)
{
    return rank->planned->plan->reduce_bits;
}

bool ms_segment_has_gradient_shards(const ms_segment *segment)
{
    return segment->num_shards > 1 && !segment->is_frozen;
}

static long sent_shard_bytes(const ms_rank *rank, const ms_segment *segment)
{
    return ms_quantized_bytes(reduce_bits(rank), ms_range_length(segment->own));
}

long ms_segment_sent_bytes(const ms_rank *rank, const ms_segment *segment)
{
    return reduce_bits(rank) != MS_NOT_QUANTISED &&
                   ms_segment_has_gradient_shards(segment)
               ? segment->num_shards * sent_shard_bytes(rank, segment)
               : 0;
}

/* Address of a segment's quantized gradients in a buffer of the unit's. */
static unsigned char *sent_at(const ms_rank *rank, const ms_param_unit *unit, int segment,
                              void *const buffers[2])
{
    bool is_expert = unit->segments[segment]->is_expert;
    long before = 0;
    for (int i = 0; i < segment; i++)
        if (unit->segments[i]->is_expert == is_expert)
            before += ms_segment_sent_bytes(rank, unit->segments[i]);
    return ms_unit_at(MS_SCALAR_BYTE, buffers[is_expert], before);
}

ms_status ms_unit_quantize_gradients(const ms_rank *rank, const ms_param_unit *unit,
                                     int segment, ms_transfer *transfer)
{
    const ms_segment *s = unit->segments[segment];
    ms_scalar type = unit->precision.comm;
    long size = ms_range_length(s->own), bytes = sent_shard_bytes(rank, s);
    if (!rank->backend->has_values)
        return MS_OK;
    unsigned char *sent = sent_at(rank, unit, segment, unit->buffers->sent);
    void *whole =
        ms_unit_at(type, unit->buffers->grads[s->is_expert], unit->buffer_first[segment]);
    long *each = MS_NEW_ARRAY(rank->scratch, s->num_shards, long);
    for (long shard = 0; shard < s->num_shards; shard++) {
        each[shard] = bytes;
        MS_TRY(convert(rank, false,
                       &(coded){reduce_bits(rank), type,
                                ms_unit_at(type, whole, shard * size), size,
                                sent + shard * bytes}));
    }
    transfer->kind = MS_TRANSFER_ALL_TO_ALL;
    transfer->scalar = MS_SCALAR_BYTE;
    transfer->send = sent;
    transfer->receive = sent_at(rank, unit, segment, unit->buffers->reduced);
    transfer->send_counts = transfer->receive_counts = each;
    transfer->count = s->num_shards * bytes;
    return MS_OK;
}

ms_status ms_unit_add_quantized(const ms_rank *rank, const ms_param_unit *unit,
                                int segment)
{
    const ms_segment *s = unit->segments[segment];
    const ms_array_ops *arrays = rank->backend->arrays;
    ms_quantized_bits bits = reduce_bits(rank);
    ms_scalar type = unit->precision.gradient;
    long size = ms_range_length(s->own), bytes = sent_shard_bytes(rank, s);
    unsigned char *from = sent_at(rank, unit, segment, unit->buffers->reduced);
    double sum[MS_QUANTISED_BLOCK], values[MS_QUANTISED_BLOCK];
    for (long at = 0; at < size; at += MS_QUANTISED_BLOCK) {
        long num = size - at < MS_QUANTISED_BLOCK ? size - at : MS_QUANTISED_BLOCK;
        void *here = ms_unit_at(type, s->grads, at);
        memset(sum, 0, sizeof sum);
        if (!s->is_shard_empty)
            MS_TRY(arrays->read(rank->cx, rank->device, type, sum, here, num));
        for (int shard = 0; shard < s->num_shards; shard++) {
            ms_quantized_read(bits, from + shard * bytes + ms_quantized_bytes(bits, at),
                              num, values);
            for (long i = 0; i < num; i++)
                sum[i] += values[i];
        }
        MS_TRY(arrays->write(rank->cx, rank->device, type, here, sum, num));
    }
    return MS_OK;
}
