#include "costmodel/calibrate/samples.h"

#include "costmodel/tensor/op.h"

#include <string.h>

#define COLUMNS (4 + MS_SAMPLE_SIZES + 2)

bool ms_samples_alike(const ms_sample *a, const ms_sample *b)
{
    bool alike = a->kind == b->kind && a->what == b->what && a->ranks == b->ranks;
    for (int i = 0; i < MS_SAMPLE_SIZES; i++)
        alike = alike && a->size[i] == b->size[i];
    return alike;
}

void ms_samples_add(ms_arena *arena, ms_samples *samples, const ms_sample *sample)
{
    MS_MAKE_ROOM(arena, samples->items, samples->num, samples->capacity, 256);
    samples->items[samples->num++] = *sample;
}

void ms_samples_write(ms_jout *out, const ms_samples *samples)
{
    ms_jout_begin_array(out);
    for (int i = 0; i < samples->num; i++) {
        const ms_sample *s = &samples->items[i];
        ms_jout_begin_array(out);
        ms_jout_number(out, s->kind);
        ms_jout_number(out, s->what);
        ms_jout_number(out, (double)s->ranks);
        ms_jout_number(out, s->launch);
        for (int j = 0; j < MS_SAMPLE_SIZES; j++)
            ms_jout_number(out, s->size[j]);
        ms_jout_number(out, s->seconds);
        ms_jout_number(out, s->typical_s);
        ms_jout_end_array(out);
    }
    ms_jout_end_array(out);
}

static ms_status read_sample(ms_ctx *cx, ms_jval row, ms_sample *out)
{
    double values[COLUMNS];
    if (!ms_json_is_array(row) || ms_json_length(row) != COLUMNS)
        return ms_json_fail(cx, row, "a sample must be an array of %d numbers", COLUMNS);
    for (int i = 0; i < COLUMNS; i++) {
        double most = i >= 4 && i < COLUMNS - 2 ? 1e18 : 1e6;
        if (i < 2)
            most = (i == 0 ? (double)MS_NUM_SAMPLE_KINDS : (double)MS_NUM_OPS) - 1.0;
        MS_TRY(ms_json_number(cx, ms_json_element(cx, row, i), 0.0, most, &values[i]));
    }
    *out = (ms_sample){.kind = (int)values[0],
                       .what = (int)values[1],
                       .ranks = (long)values[2],
                       .launch = (int)values[3],
                       .seconds = values[COLUMNS - 2],
                       .typical_s = values[COLUMNS - 1]};
    memcpy(out->size, values + 4, sizeof out->size);
    if (!(out->seconds > 0.0))
        return ms_json_fail(cx, row, "a sample must take time");
    return MS_OK;
}

ms_status ms_samples_read(ms_ctx *cx, ms_jval array, ms_samples *samples)
{
    if (!ms_json_is_array(array))
        return ms_json_fail(cx, array, "must be an array of samples");
    for (int i = 0; i < ms_json_length(array); i++) {
        ms_sample sample;
        MS_TRY(read_sample(cx, ms_json_element(cx, array, i), &sample));
        ms_samples_add(cx->arena, samples, &sample);
    }
    return MS_OK;
}
