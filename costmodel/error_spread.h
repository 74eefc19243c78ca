/* How far measured step times, or peaks of memory, lie from predicted ones: errors of
 * published runs that the constants were not fitted to, by source, stack and number of
 * GPUs; and from them the interval that is to hold 90 % of measurements of a plan. [13.6]
 * of docs/formulas. */
#ifndef MS_COSTMODEL_ERROR_SPREAD_H
#define MS_COSTMODEL_ERROR_SPREAD_H

#include "base/json.h"

#define MS_INTERVAL_FRAC 0.9         /* of measurements that an interval is to hold */
#define MS_STEP_SPREAD   "step-time" /* in configs/spreads/ */
#define MS_PEAK_SPREAD   "memory"    /* likewise */
#define MS_ERROR_POINTS  20          /* that stand for a cell with more runs */

/* An error is log(measured / predicted). */
typedef struct ms_error_row {
    const char *id, *source, *stack;
    long gpus;
    double new_error;   /* no run of its source was fitted */
    double known_error; /* other runs of its source were */
} ms_error_row;

/* Runs of one source with one stack at one scale. */
typedef struct ms_error_cell {
    const char *stack;
    long most_gpus; /* ms_error_scale */
    int num_runs;
    const char *const *runs; /* (num_runs): their ids */
    int num_points;
    const double *new_errors, *known_errors; /* (num_points), all as likely */
} ms_error_cell;

typedef struct ms_error_source {
    const char *name;
    int num_cells;
    const ms_error_cell *cells;
} ms_error_source;

typedef struct ms_error_spread {
    const char *name;   /* of its file */
    const char *source; /* what it was made from */
    /* of errors of the same source: how little its second run tells beside its first */
    double source_correlation;
    /* that the wider class weighs as, beside the sources of a narrower one */
    double prior_sources;
    int num_sources;
    const ms_error_source *sources;
} ms_error_spread;

/* The last ones tell most; a plan's error is like those of all its classes. */
typedef enum ms_error_level {
    MS_ERRORS_OF_ALL,
    MS_ERRORS_OF_SCALE, /* at the plan's number of GPUs */
    MS_ERRORS_OF_STACK,
    MS_ERRORS_OF_BOTH, /* of the stack at the number of GPUs */
    MS_NUM_ERROR_LEVELS
} ms_error_level;

typedef struct ms_error_class {
    const char *stack;
    long gpus;
    const char *left_out; /* a source that is not looked at; NULL: none */
} ms_error_class;

typedef struct ms_error_interval {
    /* of the prediction, low <= 1 <= high; NaN: too few sources to tell */
    double low_frac, high_frac;
    int num_runs[MS_NUM_ERROR_LEVELS], num_sources[MS_NUM_ERROR_LEVELS];
} ms_error_interval;

/* The most GPUs of the scale that `gpus` belong to: a few nodes, or any number. Finer
 * scales have too few sources each: one whose runs stall is then a sixth of all. */
#define MS_FEW_GPUS  32
#define MS_MANY_GPUS 1000000000
long ms_error_scale(long gpus);

/* From rows in any order, without NaN; the same result every time. Lives in the arena
 * with the names of the rows. */
ms_error_spread ms_error_spread_make(ms_arena *arena, const ms_error_row *rows,
                                     int num_rows, double prior_sources);
ms_error_interval ms_error_spread_interval(const ms_error_spread *spread,
                                           const ms_error_class *class);
/* How probable it is that the measurement is at most `ratio` of the prediction, by the
 * distribution that the interval is of: between nothing and all there is always what a
 * source still to come may do. 0 < ratio; NaN: the spread is empty. */
double ms_error_spread_frac_below(const ms_error_spread *spread,
                                  const ms_error_class *class, double ratio);
/* Whether the run is among those that it was made from. */
bool ms_error_spread_has(const ms_error_spread *spread, const char *source,
                         const char *id);

/* meshsim.spread/1. The file of that name in configs/spreads/; NULL where there is
 * none. */
ms_status ms_error_spread_load(ms_ctx *cx, const char *name, const ms_error_spread **out);
ms_status ms_error_spread_read(ms_ctx *cx, ms_jval root, ms_error_spread *out);
void ms_error_spread_write_json(ms_jout *out, const ms_error_spread *spread);

#endif
