/* Adds tables of measured times to a profile; states how much times vary by launch. */
#include "costmodel/calibrate/calibration_priv.h"

#include "costmodel/calibrate/statistics.h"

#include <math.h>
#include <string.h>

/* Collects the seconds of all samples alike to sample `first`; returns how many. */
static int launches_of(const ms_samples *samples, int first, double *seconds)
{
    int num = 0;
    for (int i = first; i < samples->num; i++)
        if (ms_samples_alike(&samples->items[first], &samples->items[i]))
            seconds[num++] = samples->items[i].seconds;
    return num;
}

/* Collects the distinct cases of the samples, each with the median time over launches of
 * the program. Returns their number. */
static int cases_of(const ms_calibration_work *w, ms_sample *cases)
{
    const ms_samples *samples = w->in->samples;
    double *seconds = MS_NEW_ARRAY(w->cx->arena, samples->num + 1, double);
    int num = 0;
    for (int i = 0; i < samples->num; i++) {
        bool known = false;
        for (int c = 0; c < num && !known; c++)
            known = ms_samples_alike(&cases[c], &samples->items[i]);
        if (known)
            continue;
        cases[num] = samples->items[i];
        cases[num++].seconds =
            ms_quantile(seconds, launches_of(samples, i, seconds), 0.5);
    }
    return num;
}

static ms_sweep_rows rows_of(const ms_calibration_work *w, const ms_sample *cases,
                             int num, const ms_sample *like)
{
    const int most_columns = MS_SAMPLE_SIZES + 1;
    double *values = MS_NEW_ARRAY(w->cx->arena, num * most_columns + 1, double);
    ms_sweep_rows rows = {0, values};
    for (int i = 0; i < num; i++) {
        bool same_what =
            like->kind != MS_SAMPLE_COLLECTIVE || cases[i].what == like->what;
        if (cases[i].kind != like->kind || cases[i].ranks != like->ranks || !same_what)
            continue;
        double point[MS_SAMPLE_SIZES + 3];
        int skip = like->kind == MS_SAMPLE_COLLECTIVE ? 2 : ms_sample_is_attention(like);
        int columns = ms_sample_point(&cases[i], point) - skip;
        memcpy(values + rows.num * columns, point + skip,
               (size_t)columns * sizeof *values);
        rows.num++;
    }
    return rows;
}

/* Adds a curve of time by size for each collective and number of ranks. */
static void add_curves(const ms_calibration_work *w, const ms_sample *cases, int num,
                       ms_sweep *sweep)
{
    sweep->curves = MS_NEW_ARRAY(w->cx->arena, num + 1, ms_sweep_curve);
    for (int i = 0; i < num; i++) {
        const ms_sample *c = &cases[i];
        if (c->kind != MS_SAMPLE_COLLECTIVE ||
            ms_sweep_find(sweep, c->what, c->ranks) != NULL)
            continue;
        sweep->curves[sweep->num_curves++] =
            (ms_sweep_curve){c->what, c->ranks, rows_of(w, cases, num, c)};
    }
}

static void add_tables(ms_calibration_work *w, const ms_sample *cases, int num)
{
    ms_sweep *sweep = MS_NEW(w->cx->arena, ms_sweep);
    long ranks = w->in->ranks;
    *sweep = (ms_sweep){
        .machine = w->in->machine, .dtype = (int)w->in->compute, .ranks = ranks};
    sweep->products =
        rows_of(w, cases, num, &(ms_sample){.kind = MS_SAMPLE_GEMM, .ranks = ranks});
    for (int i = 0; i < 2; i++)
        sweep->attention[i] = rows_of(
            w, cases, num, &(ms_sample){.kind = MS_SAMPLE_ATTENTION + i, .ranks = ranks});
    add_curves(w, cases, num, sweep);
    w->out->profile.measured = sweep;
}

/* ---- spread ---- */

static void add_launch_ratio(ms_calibration_work *w)
{
    const ms_samples *samples = w->in->samples;
    double least = INFINITY, most = -INFINITY;
    for (int launch = 0; launch < w->in->num_launches; launch++) {
        double sum = 0.0;
        int num = 0;
        for (int i = 0; i < samples->num; i++) {
            if (samples->items[i].launch == launch) {
                sum += log(samples->items[i].seconds);
                num++;
            }
        }
        least = fmin(least, sum / num);
        most = fmax(most, sum / num);
    }
    w->out->launch_ratio = exp(most - least);
}

static void add_spread(ms_calibration_work *w, const ms_sample *cases, int num)
{
    const ms_samples *samples = w->in->samples;
    double *ratios = MS_NEW_ARRAY(w->cx->arena, samples->num + 1, double);
    double *seconds = MS_NEW_ARRAY(w->cx->arena, samples->num + 1, double);
    for (int c = 0; c < num; c++) {
        int first = 0;
        while (!ms_samples_alike(&samples->items[first], &cases[c]))
            first++;
        int launches = launches_of(samples, first, seconds);
        double least = ms_quantile(seconds, launches, 0.0);
        ratios[c] = ms_quantile(seconds, launches, 1.0) / least;
    }
    w->out->case_ratio_p90 = ms_quantile(ratios, num, 0.9);
    for (int i = 0; i < samples->num; i++)
        ratios[i] = samples->items[i].typical_s / samples->items[i].seconds;
    w->out->typical_ratio = ms_quantile(ratios, samples->num, 0.5);
    w->out->num_cases = num;
    add_launch_ratio(w);
}

void ms_calibration_add_tables(ms_calibration_work *w)
{
    ms_sample *cases = MS_NEW_ARRAY(w->cx->arena, w->in->samples->num + 1, ms_sample);
    int num = cases_of(w, cases);
    add_tables(w, cases, num);
    add_spread(w, cases, num);
}
