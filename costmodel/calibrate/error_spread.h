/* Spread of measured step times, or peaks of memory, around predicted ones: errors of
 * published runs not used in the fits, by source, stack and number of GPUs, and the
 * interval that contains 90 % of measurements of a plan. [13.6] of docs/formulas. */
#ifndef MS_COSTMODEL_CALIBRATE_ERROR_SPREAD_H
#define MS_COSTMODEL_CALIBRATE_ERROR_SPREAD_H

#include "base/json.h"

#define MS_INTERVAL_FRAC 0.9         /* share of measurements that an interval contains */
#define MS_STEP_SPREAD   "step-time" /* file in configs/spreads/ */
#define MS_PEAK_SPREAD   "memory"    /* file in configs/spreads/ */
#define MS_ERROR_POINTS  20          /* most error points of one cell */

/* Errors of one run; an error is log(measured / predicted). */
typedef struct ms_error_row {
    const char *id, *source, *stack;
    long gpus;
    double new_error;   /* error by constants fitted without the run's source */
    double known_error; /* error by constants fitted to other runs of its source */
} ms_error_row;

/* Errors of the runs of one source with one stack at one scale. */
typedef struct ms_error_cell {
    const char *stack;
    long most_gpus; /* upper end of the scale (ms_error_scale) */
    int num_runs;
    const char *const *runs; /* (num_runs): ids of the runs */
    int num_points;
    const double *new_errors, *known_errors; /* (num_points), equally likely */
} ms_error_cell;

typedef struct ms_error_source {
    const char *name;
    int num_cells;
    const ms_error_cell *cells;
} ms_error_source;

typedef struct ms_error_spread {
    const char *name;   /* name of the spread's file */
    const char *source; /* data that the spread was made from */
    /* correlation of errors within a source; 1: its second run adds nothing */
    double source_correlation;
    /* number of sources as which the next wider class of runs counts */
    double prior_sources;
    int num_sources;
    const ms_error_source *sources;
} ms_error_spread;

/* Classes of runs around a plan; the last ones are the most similar to it. */
typedef enum ms_error_level {
    MS_ERRORS_OF_ALL,
    MS_ERRORS_OF_SCALE, /* runs at the scale of the plan's number of GPUs */
    MS_ERRORS_OF_STACK,
    MS_ERRORS_OF_BOTH, /* runs with the plan's stack at its scale */
    MS_NUM_ERROR_LEVELS
} ms_error_level;

typedef struct ms_error_class {
    const char *stack;
    long gpus;
    const char *left_out; /* a source of runs to ignore; NULL if none */
} ms_error_class;

typedef struct ms_error_interval {
    /* interval over prediction, low <= 1 <= high; NaN if there are too few sources */
    double low_frac, high_frac;
    int num_runs[MS_NUM_ERROR_LEVELS], num_sources[MS_NUM_ERROR_LEVELS];
} ms_error_interval;

/* The upper end of the scale of `gpus`: MS_FEW_GPUS (a few nodes) or any number. Finer
 * scales would have too few sources: one with stalled runs would be a sixth of all. */
#define MS_FEW_GPUS  32
#define MS_MANY_GPUS 1000000000
long ms_error_scale(long gpus);

/* Makes the spread of errors from rows in any order, without NaN; deterministic. Lives in
 * the arena and refers to the names of the rows. */
ms_error_spread ms_error_spread_make(ms_arena *arena, const ms_error_row *rows,
                                     int num_rows, double prior_sources);
ms_error_interval ms_error_spread_interval(const ms_error_spread *spread,
                                           const ms_error_class *class);
/* Probability that the measurement is at most `ratio` (> 0) times the prediction, by the
 * distribution behind the interval; always between 0 and 1, because a future source may
 * lie anywhere. NaN if the spread is empty. */
double ms_error_spread_frac_below(const ms_error_spread *spread,
                                  const ms_error_class *class, double ratio);
/* Whether the spread contains that run of that source. */
bool ms_error_spread_has(const ms_error_spread *spread, const char *source,
                         const char *id);

/* Loads a file meshsim.spread/1 by its name in configs/spreads/; *out is NULL if there is
 * none. Errors: MS_EIO, MS_EINPUT if it is malformed. */
ms_status ms_error_spread_load(ms_ctx *cx, const char *name, const ms_error_spread **out);
ms_status ms_error_spread_read(ms_ctx *cx, ms_jval root, ms_error_spread *out);
void ms_error_spread_write_json(ms_jout *out, const ms_error_spread *spread);

#endif
