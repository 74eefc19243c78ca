/* Distribution of the error of a plan's prediction: a mixture of the errors of four
 * classes of measured runs, namely those with the plan's stack and scale, its stack, its
 * scale, and all. In this order each class gets w / (w + prior) of the weight still left;
 * w grows with its sources (find_shares). Sources, not runs, are the sample: the runs of
 * one source share conditions and measurement. */
#include "costmodel/calibrate/error_spread.h"

#include "costmodel/calibrate/statistics.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_CORRELATION 0.05

long ms_error_scale(long gpus)
{
    return gpus <= MS_FEW_GPUS ? MS_FEW_GPUS : MS_MANY_GPUS;
}

/* ---- classes ---- */

static bool is_in(const ms_error_cell *cell, const ms_error_class *class,
                  ms_error_level level)
{
    bool of_scale = level == MS_ERRORS_OF_SCALE || level == MS_ERRORS_OF_BOTH,
         of_stack = level == MS_ERRORS_OF_STACK || level == MS_ERRORS_OF_BOTH;
    return (!of_scale || cell->most_gpus == ms_error_scale(class->gpus)) &&
           (!of_stack || strcmp(cell->stack, class->stack) == 0);
}

static int count_runs(const ms_error_source *source, const ms_error_class *class,
                      ms_error_level level)
{
    int num = 0;
    if (class->left_out != NULL && strcmp(source->name, class->left_out) == 0)
        return 0;
    for (int i = 0; i < source->num_cells; i++)
        if (is_in(&source->cells[i], class, level))
            num += source->cells[i].num_runs;
    return num;
}

/* Weight of a source with `num_runs` runs, in which errors correlate: the reliability of
 * their mean (Spearman and Brown 1910), 1 for infinitely many runs. */
static double source_weight(const ms_error_spread *spread, int num_runs)
{
    double r = spread->source_correlation;
    return num_runs * r / (1.0 + (num_runs - 1) * r);
}

/* ---- mixture ---- */

typedef struct mixture {
    int num;
    double *errors, *weights;
} mixture;

typedef struct class_share {
    double weight; /* sum of source_weight over sources with runs of this class */
    double frac;   /* share of this class's errors in the weights of the mixture */
} class_share;

static void add_cell(const ms_error_cell *cell, bool known, double weight, mixture *out)
{
    for (int i = 0; i < cell->num_points; i++) {
        out->errors[out->num] = known ? cell->known_errors[i] : cell->new_errors[i];
        out->weights[out->num++] = weight / cell->num_points;
    }
}

/* Adds the errors of the runs in class `level` to the mixture: known_errors if the class
 * shares the plan's stack, whose constants were fitted to such runs, else new_errors. */
static void add_level(const ms_error_spread *spread, const ms_error_class *class,
                      ms_error_level level, const class_share *share, mixture *out)
{
    for (int s = 0; s < spread->num_sources; s++) {
        const ms_error_source *source = &spread->sources[s];
        int num_runs = count_runs(source, class, level);
        double weight =
            share->frac * source_weight(spread, num_runs) / share->weight / num_runs;
        for (int i = 0; i < source->num_cells && num_runs > 0; i++)
            if (is_in(&source->cells[i], class, level))
                add_cell(&source->cells[i], level >= MS_ERRORS_OF_STACK,
                         weight * source->cells[i].num_runs, out);
    }
}

/* Sets each class's share of the mixture's weight. Returns the share left for a future
 * source of runs, whose error may be any (Dunn, Wasserman and Ramdas 2022). */
static double find_shares(const ms_error_spread *spread, const ms_error_class *class,
                          class_share shares[MS_NUM_ERROR_LEVELS], ms_error_interval *out)
{
    double left = 1.0;
    for (int level = MS_NUM_ERROR_LEVELS - 1; level >= 0; level--) {
        shares[level].weight = 0.0;
        for (int s = 0; s < spread->num_sources; s++) {
            int num_runs = count_runs(&spread->sources[s], class, (ms_error_level)level);
            shares[level].weight += source_weight(spread, num_runs);
            out->num_runs[level] += num_runs;
            out->num_sources[level] += num_runs > 0;
        }
        bool all = level == MS_ERRORS_OF_ALL;
        double weight = all ? out->num_sources[level] : shares[level].weight;
        shares[level].frac =
            left * weight / (weight + (all ? 1.0 : spread->prior_sources));
        left -= shares[level].frac;
    }
    return left;
}

/* Error at one end of the interval. Sums `beyond`, the weight outside all errors, and the
 * weights from index `at` on in steps of `by`; returns the error at which the sum reaches
 * (1 - MS_INTERVAL_FRAC) / 2. NaN if `beyond` alone reaches it, or no error does. */
static double tail_error(const mixture *mix, double beyond, int at, int by)
{
    const double tail = (1.0 - MS_INTERVAL_FRAC) / 2.0;
    double sum = beyond;
    if (sum >= tail)
        return (double)NAN;
    for (; at >= 0 && at < mix->num; at += by) {
        sum += mix->weights[at];
        if (sum >= tail)
            return mix->errors[at];
    }
    return (double)NAN;
}

static int count_points(const ms_error_spread *spread)
{
    int num = 0;
    for (int s = 0; s < spread->num_sources; s++)
        for (int i = 0; i < spread->sources[s].num_cells; i++)
            num += spread->sources[s].cells[i].num_points;
    return num;
}

/* Builds the mixture; returns the weight below all its errors, the same as above all. */
static double mix_levels(ms_arena *scratch, const ms_error_spread *spread,
                         const ms_error_class *class, mixture *mix,
                         ms_error_interval *out)
{
    class_share shares[MS_NUM_ERROR_LEVELS];
    int most = MS_NUM_ERROR_LEVELS * count_points(spread);
    *mix = (mixture){.errors = MS_NEW_ARRAY(scratch, most, double),
                     .weights = MS_NEW_ARRAY(scratch, most, double)};
    double beyond = find_shares(spread, class, shares, out) / 2.0;
    for (int level = 0; level < MS_NUM_ERROR_LEVELS; level++)
        if (shares[level].weight > 0.0)
            add_level(spread, class, (ms_error_level)level, &shares[level], mix);
    return beyond;
}

double ms_error_spread_frac_below(const ms_error_spread *spread,
                                  const ms_error_class *class, double ratio)
{
    ms_error_interval counts = {0};
    mixture mix;
    ms_arena *scratch = ms_arena_open();
    double sum = mix_levels(scratch, spread, class, &mix, &counts), most = log(ratio);
    for (int i = 0; i < mix.num; i++)
        sum += mix.errors[i] <= most ? mix.weights[i] : 0.0;
    bool empty = mix.num == 0;
    ms_arena_close(scratch);
    return empty ? (double)NAN : sum;
}

double ms_error_spread_ratio(const ms_error_spread *spread, const ms_error_class *class,
                             double frac, bool *reached)
{
    ms_error_interval counts = {0};
    mixture mix;
    ms_arena *scratch = ms_arena_open();
    double sum = mix_levels(scratch, spread, class, &mix, &counts);
    double error = mix.num == 0 ? (double)NAN : 0.0;
    gsl_sort2(mix.errors, 1, mix.weights, 1, (size_t)mix.num);
    for (int i = 0; i < mix.num && sum < frac; i++) {
        sum += mix.weights[i];
        error = fmax(mix.errors[i], 0.0);
    }
    *reached = mix.num > 0 && sum >= frac;
    ms_arena_close(scratch);
    return exp(error);
}

/* Error at which the weights of the sorted mixture, from index `first` on, reach half of
 * their sum; NaN if there are none. */
static double median_from(const mixture *mix, int first)
{
    double all = 0.0, sum = 0.0;
    for (int i = first; i < mix->num; i++)
        all += mix->weights[i];
    for (int i = first; i < mix->num; i++) {
        sum += mix->weights[i];
        if (sum >= all / 2.0)
            return mix->errors[i];
    }
    return (double)NAN;
}

/* Splits the sorted mixture at the mirror image of `low`: what lies above it in excess of
 * what lies below `low` is disturbed. */
static void find_disturbances(const mixture *mix, double low, ms_error_interval *out)
{
    double high = 2.0 * median_from(mix, 0) - low, below = 0.0, above = 0.0;
    int first = mix->num;
    for (int i = 0; i < mix->num; i++)
        below += mix->errors[i] < low ? mix->weights[i] : 0.0;
    for (; first > 0 && mix->errors[first - 1] > high; first--)
        above += mix->weights[first - 1];
    out->undisturbed_high_frac = fmin(exp(fmax(high, 0.0)), out->high_frac);
    out->disturbed_frac = fmax(above - below, 0.0);
    out->disturbed_slowdown_frac = expm1(median_from(mix, first));
}

ms_error_interval ms_error_spread_interval(const ms_error_spread *spread,
                                           const ms_error_class *class)
{
    ms_error_interval out = MS_NO_ERROR_INTERVAL;
    mixture mix;
    ms_arena *scratch = ms_arena_open();
    double beyond = mix_levels(scratch, spread, class, &mix, &out);
    gsl_sort2(mix.errors, 1, mix.weights, 1, (size_t)mix.num);
    double low = tail_error(&mix, beyond, 0, 1),
           high = tail_error(&mix, beyond, mix.num - 1, -1);
    if (!isnan(low) && !isnan(high)) {
        out.low_frac = exp(fmin(low, 0.0));
        out.high_frac = exp(fmax(high, 0.0));
        find_disturbances(&mix, low, &out);
    }
    ms_arena_close(scratch);
    return out;
}

bool ms_error_spread_has(const ms_error_spread *spread, const char *source,
                         const char *id)
{
    for (int s = 0; s < spread->num_sources; s++) {
        const ms_error_source *of = &spread->sources[s];
        if (strcmp(of->name, source) != 0)
            continue;
        for (int i = 0; i < of->num_cells; i++)
            for (int r = 0; r < of->cells[i].num_runs; r++)
                if (strcmp(of->cells[i].runs[r], id) == 0)
                    return true;
    }
    return false;
}

/* ---- construction ---- */

static int compare_rows(const void *a, const void *b)
{
    const ms_error_row *x = *(const ms_error_row *const *)a,
                       *y = *(const ms_error_row *const *)b;
    long scale_x = ms_error_scale(x->gpus), scale_y = ms_error_scale(y->gpus);
    int by_source = strcmp(x->source, y->source), by_stack = strcmp(x->stack, y->stack);
    if (by_source != 0 || by_stack != 0)
        return by_source != 0 ? by_source : by_stack;
    if (scale_x != scale_y)
        return scale_x < scale_y ? -1 : 1;
    int by_id = strcmp(x->id, y->id);
    return by_id != 0 ? by_id : (x > y) - (x < y);
}

/* At most MS_ERROR_POINTS quantiles that represent the errors. Sorts `errors`. */
static const double *points_of(ms_arena *arena, double *errors, int num_errors)
{
    int num = num_errors < MS_ERROR_POINTS ? num_errors : MS_ERROR_POINTS;
    double *points = MS_NEW_ARRAY(arena, num, double);
    gsl_sort(errors, 1, (size_t)num_errors);
    for (int i = 0; i < num; i++) {
        double error = num == num_errors
                           ? errors[i]
                           : ms_quantile(errors, num_errors, (i + 0.5) / num);
        points[i] = round(1e4 * error) / 1e4;
    }
    return points;
}

static ms_error_cell make_cell(ms_arena *arena, const ms_error_row *const *rows, int num)
{
    const char **ids = MS_NEW_ARRAY(arena, num, const char *);
    double *of_new = MS_NEW_ARRAY(arena, num, double),
           *of_known = MS_NEW_ARRAY(arena, num, double);
    for (int i = 0; i < num; i++) {
        ids[i] = rows[i]->id;
        of_new[i] = rows[i]->new_error;
        of_known[i] = rows[i]->known_error;
    }
    return (ms_error_cell){.stack = rows[0]->stack,
                           .most_gpus = ms_error_scale(rows[0]->gpus),
                           .num_runs = num,
                           .runs = ids,
                           .num_points = num < MS_ERROR_POINTS ? num : MS_ERROR_POINTS,
                           .new_errors = points_of(arena, of_new, num),
                           .known_errors = points_of(arena, of_known, num)};
}

static bool same_cell(const ms_error_row *a, const ms_error_row *b)
{
    return strcmp(a->stack, b->stack) == 0 &&
           ms_error_scale(a->gpus) == ms_error_scale(b->gpus);
}

static ms_error_source make_source(ms_arena *arena, const ms_error_row *const *rows,
                                   int num)
{
    ms_error_cell *cells = MS_NEW_ARRAY(arena, num, ms_error_cell);
    ms_error_source out = {.name = rows[0]->source, .cells = cells};
    for (int first = 0, end; first < num; first = end) {
        end = first + 1;
        while (end < num && same_cell(rows[first], rows[end]))
            end++;
        cells[out.num_cells++] = make_cell(arena, &rows[first], end - first);
    }
    return out;
}

/* Correlation of errors within sources, by rank so that outliers do not dominate. */
static double correlation(ms_arena *arena, const ms_error_row *const *rows,
                          const int *source_of, int num)
{
    size_t *order = MS_NEW_ARRAY(arena, num, size_t);
    double *errors = MS_NEW_ARRAY(arena, num, double),
           *ranks = MS_NEW_ARRAY(arena, num, double);
    for (int i = 0; i < num; i++)
        errors[i] = rows[i]->new_error;
    gsl_sort_index(order, errors, 1, (size_t)num);
    for (int i = 0; i < num; i++)
        ranks[order[i]] = i;
    double r = ms_intraclass_correlation(ranks, source_of, num);
    return isnan(r) ? 1.0 : round(1e4 * fmax(r, LEAST_CORRELATION)) / 1e4;
}

ms_error_spread ms_error_spread_make(ms_arena *arena, const ms_error_row *rows,
                                     int num_rows, double prior_sources)
{
    const ms_error_row **sorted = MS_NEW_ARRAY(arena, num_rows, const ms_error_row *);
    ms_error_source *sources = MS_NEW_ARRAY(arena, num_rows, ms_error_source);
    int *source_of = MS_NEW_ARRAY(arena, num_rows, int);
    ms_error_spread out = {.sources = sources, .prior_sources = prior_sources};
    for (int i = 0; i < num_rows; i++)
        sorted[i] = &rows[i];
    if (num_rows > 1)
        qsort(sorted, (size_t)num_rows, sizeof *sorted, compare_rows);
    for (int first = 0, end; first < num_rows; first = end) {
        for (end = first;
             end < num_rows && strcmp(sorted[end]->source, sorted[first]->source) == 0;
             end++)
            source_of[end] = out.num_sources;
        sources[out.num_sources++] = make_source(arena, &sorted[first], end - first);
    }
    out.source_correlation = correlation(arena, sorted, source_of, num_rows);
    return out;
}
