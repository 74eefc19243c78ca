/* Thins long lists of memory samples so that they can be drawn. */
#include "plots/memory_curve_data.h"

static double sum_of(const ms_memory_sample *sample)
{
    double bytes = 0.0;
    for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
        bytes += sample->bytes[part];
    return bytes;
}

/* Whether another sample follows at the same time, so that this one has no duration. */
static bool is_instant(const ms_memory_sample *samples, int num, int i)
{
    return i + 1 < num && samples[i + 1].time_s <= samples[i].time_s;
}

typedef struct column {
    int first, last, lowest, highest; /* indices of samples; -1: the column is empty */
} column;

static void add_to_column(const ms_memory_sample *samples, int i, column *c)
{
    if (c->first < 0)
        *c = (column){i, i, i, i};
    c->last = i;
    if (sum_of(&samples[i]) < sum_of(&samples[c->lowest]))
        c->lowest = i;
    if (sum_of(&samples[i]) > sum_of(&samples[c->highest]))
        c->highest = i;
}

static int column_of(const ms_memory_sample *sample, double step_s, int columns)
{
    double at = step_s > 0.0 ? sample->time_s / step_s * columns : 0.0;
    return at >= columns ? columns - 1 : (int)at;
}

static int first_highest(const ms_memory_sample *samples, int num)
{
    int peak = 0;
    for (int i = 1; i < num; i++)
        if (sum_of(&samples[i]) > sum_of(&samples[peak]))
            peak = i;
    return peak;
}

ms_thinned_samples ms_memory_samples_thin(ms_arena *arena,
                                          const ms_memory_sample *samples, int num,
                                          double step_s, int columns)
{
    int highest = first_highest(samples, num);
    column *all = MS_NEW_ARRAY(arena, columns, column);
    for (int k = 0; k < columns; k++)
        all[k].first = -1;
    for (int i = 0; i < num; i++)
        if (i == highest || !is_instant(samples, num, i))
            add_to_column(samples, i, &all[column_of(&samples[i], step_s, columns)]);
    int most = num < 4 * columns ? num : 4 * columns;
    ms_memory_sample *selected = MS_NEW_ARRAY(arena, most, ms_memory_sample);
    ms_thinned_samples out = {.samples = selected};
    for (int k = 0; k < columns; k++) {
        const column *c = &all[k];
        for (int i = c->first; i >= 0 && i <= c->last; i++) {
            if (i != c->first && i != c->last && i != c->lowest && i != c->highest)
                continue;
            out.peak = i == highest ? out.num : out.peak;
            selected[out.num++] = samples[i];
        }
    }
    return out;
}
