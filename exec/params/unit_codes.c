/* Frozen weights of a block that are stored in NF4 (exec/params/nf4.h): runs of elements
 * that are quantized apart, so that ranks with the same part of a weight have the same
 * codes: the part of a matrix (of an expert's matrix) in one shard of the segment. */
#include "exec/params/nf4.h"
#include "exec/params/unit_priv.h"

#include <assert.h>

/* Elements of a tensor that have an expert of their own; without experts all. */
static long elements_of_expert(const ms_unit_tensor *tensor)
{
    long count = 1;
    if (tensor->name.expert_dim < 0)
        return tensor->local.count;
    for (int d = tensor->name.expert_dim + 1; d < tensor->local.num_dims; d++)
        count *= tensor->local.shape[d];
    return count;
}

/* Adds the runs of elements `range`, which is cut between shards. */
static void add_runs(ms_segment *s, ms_range range)
{
    long size = ms_range_length(s->own);
    for (long at = range.first; at < range.end;) {
        long shard_end = (at / size + 1) * size;
        long end = shard_end < range.end ? shard_end : range.end;
        s->runs[s->num_runs++] = (ms_code_run){.of = {at, end}};
        at = end;
    }
}

/* Places runs one after the other in each shard; all shards are as long as the longest. */
static void place_runs(ms_segment *s)
{
    long size = ms_range_length(s->own), shard = 0, next = 0;
    for (int i = 0; i < s->num_runs; i++) {
        ms_code_run *run = &s->runs[i];
        if (run->of.first / size != shard)
            next = 0;
        shard = run->of.first / size;
        run->byte = next;
        next += ms_nf4_bytes(ms_range_length(run->of));
        s->shard_bytes = next > s->shard_bytes ? next : s->shard_bytes;
    }
    for (int i = 0; i < s->num_runs; i++)
        s->runs[i].byte += s->runs[i].of.first / size * s->shard_bytes;
}

void ms_segment_set_codes(const ms_rank *rank, const ms_param_unit *unit, int segment)
{
    ms_segment *s = unit->segments[segment];
    long most = s->num_shards;
    for (int i = 0; i < unit->num_tensors; i++)
        if (unit->tensors[i].segment == segment)
            most += unit->tensors[i].local.count / elements_of_expert(&unit->tensors[i]);
    s->runs = MS_NEW_ARRAY(rank->cx->arena, most, ms_code_run);
    for (int i = 0; i < unit->num_tensors; i++) {
        const ms_unit_tensor *t = &unit->tensors[i];
        long step = elements_of_expert(t);
        for (long at = 0; t->segment == segment && at < t->local.count; at += step)
            add_runs(s, (ms_range){t->first + at, t->first + at + step});
    }
    place_runs(s);
}

/* The codes of the rank's shard from element `first` on. */
static unsigned char *codes_at(const ms_segment *s, long first)
{
    int i = 0;
    while (s->runs[i].of.end <= first)
        i++;
    long shard = s->own.first / ms_range_length(s->own);
    long in_run = first - s->runs[i].of.first;
    assert(in_run % MS_NF4_GROUP == 0);
    return (unsigned char *)s->params + s->runs[i].byte - shard * s->shard_bytes +
           ms_nf4_bytes(in_run);
}

void ms_segment_write_codes(const ms_segment *segment, long first, const double *values,
                            long count)
{
    ms_nf4_write(values, count, codes_at(segment, first));
}

void ms_segment_read_codes(const ms_segment *segment, long first, double *values,
                           long count)
{
    ms_nf4_read(codes_at(segment, first), count, values);
}

/* Writes up to a group of elements, whose codes begin at `from`, to `to`. */
static ms_status decode_group(const ms_rank *rank, const ms_param_unit *unit,
                              const unsigned char *from, long count, void *to)
{
    ms_arena *arena = ms_arena_open();
    double *values = MS_NEW_ARRAY(arena, count, double);
    ms_nf4_read(from, count, values);
    ms_status status = rank->backend->arrays->write(
        rank->cx, rank->device, unit->precision.real, to, values, count);
    ms_arena_close(arena);
    return status;
}

ms_status ms_unit_decode(const ms_rank *rank, const ms_param_unit *unit, int weight,
                         void *to)
{
    const ms_unit_tensor *t = unit->tensors;
    while (t->weight != weight)
        t++;
    const ms_segment *s = unit->segments[t->segment];
    const unsigned char *codes = ms_unit_whole_params(unit, t->segment);
    const ms_range of = {t->first, t->first + t->local.count};
    for (int i = 0; i < s->num_runs; i++) {
        const ms_code_run *run = &s->runs[i];
        long length = ms_range_length(ms_range_overlap(run->of, of));
        for (long at = 0; at < length; at += MS_NF4_GROUP) {
            long left = length - at;
            MS_TRY(decode_group(
                rank, unit, codes + run->byte + ms_nf4_bytes(at),
                left < MS_NF4_GROUP ? left : MS_NF4_GROUP,
                ms_unit_at(unit->precision.real, to, run->of.first + at - t->first)));
        }
    }
    return MS_OK;
}
