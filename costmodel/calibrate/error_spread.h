/* Distribution of measured step times, or memory peaks, around predicted ones: errors of
 * published runs not used in the fits, by source, stack and number of GPUs, and the
 * interval that contains 90 % of measurements of a plan. [13.6] of docs/formulas. */
#ifndef MS_COSTMODEL_CALIBRATE_ERROR_SPREAD_H
#define MS_COSTMODEL_CALIBRATE_ERROR_SPREAD_H

#include "base/json.h"

#include <math.h>

#define MS_INTERVAL_FRAC 0.9         /* share of measurements within an interval */
#define MS_STEP_SPREAD   "step-time" /* file in configs/spreads/ about step times */
#define MS_PEAK_SPREAD   "memory"    /* file in configs/spreads/ about memory peaks */
#define MS_ERROR_POINTS  20          /* most error values of an ms_error_cell */

/* Errors of the prediction for one run; an error is log(measured / predicted). */
typedef struct ms_error_row {
    const char *id, *source, *stack;
    long gpus;
    double new_error;   /* error by constants fitted without the run's source */
    double known_error; /* error by constants fitted to other runs of its source */
} ms_error_row;

/* Errors of the runs of one source with one stack and a similar number of GPUs. */
typedef struct ms_error_cell {
    const char *stack;
    long most_gpus; /* upper end of the runs' range of GPU counts (ms_error_scale) */
    int num_runs;
    const char *const *runs; /* (num_runs): ids of the runs */
    int num_points;
    /* (num_points) quantiles of the runs' errors */
    const double *new_errors, *known_errors;
} ms_error_cell;

typedef struct ms_error_source {
    const char *name;
    int num_cells;
    const ms_error_cell *cells;
} ms_error_source;

typedef struct ms_error_spread {
    const char *name;   /* name of the file in configs/spreads/ */
    const char *source; /* data that the errors were computed from */
    /* correlation of errors within a source; 1: a second run adds no information */
    double source_correlation;
    double prior_sources; /* weight of all wider classes of runs, in sources */
    int num_sources;
    const ms_error_source *sources;
} ms_error_spread;

/* Classes of runs by what they share with a plan; the last class is the most similar. */
typedef enum ms_error_level {
    MS_ERRORS_OF_ALL,
    MS_ERRORS_OF_SCALE, /* runs in the plan's range of GPU counts (ms_error_scale) */
    MS_ERRORS_OF_STACK,
    MS_ERRORS_OF_BOTH, /* runs with the plan's stack and scale */
    MS_NUM_ERROR_LEVELS
} ms_error_level;

typedef struct ms_error_class {
    const char *stack;
    long gpus;
    const char *left_out; /* source whose runs are ignored; NULL: none */
} ms_error_class;

typedef struct ms_error_interval {
    /* interval of measured / predicted, low <= 1 <= high; NaN: too few sources */
    double low_frac, high_frac;
    /* The interval without disturbances, which lengthen steps and shorten none: as far
     * above the median error as low_frac is below it; at most high_frac. */
    double undisturbed_high_frac;
    double disturbed_frac; /* share of runs above it beyond those expected there */
    double disturbed_slowdown_frac; /* their median error; NaN if there are none */
    int num_runs[MS_NUM_ERROR_LEVELS], num_sources[MS_NUM_ERROR_LEVELS];
} ms_error_interval;

/* An ms_error_interval where nothing is known. */
#define MS_NO_ERROR_INTERVAL                                                             \
    (ms_error_interval)                                                                  \
    {                                                                                    \
        .low_frac = (double)NAN, .high_frac = (double)NAN,                               \
        .undisturbed_high_frac = (double)NAN, .disturbed_frac = (double)NAN,             \
        .disturbed_slowdown_frac = (double)NAN                                           \
    }

/* ms_error_scale: upper end of the range of GPU counts that holds `gpus`, MS_FEW_GPUS or
 * MS_MANY_GPUS. More ranges would leave too few sources of runs in each. */
#define MS_FEW_GPUS  32
#define MS_MANY_GPUS 1000000000
long ms_error_scale(long gpus);

/* Makes an error distribution from rows in any order, whose errors are not NaN. The
 * distribution lives in the arena and points to the strings of the rows. */
ms_error_spread ms_error_spread_make(ms_arena *arena, const ms_error_row *rows,
                                     int num_rows, double prior_sources);
ms_error_interval ms_error_spread_interval(const ms_error_spread *spread,
                                           const ms_error_class *class);
/* Probability that a measurement is at most `ratio` (> 0) times the prediction; never 0
 * or 1, since a future source of runs may have any error. NaN: the spread is empty. */
double ms_error_spread_frac_below(const ms_error_spread *spread,
                                  const ms_error_class *class, double ratio);
/* Smallest ratio of at least 1 for which ms_error_spread_frac_below is at least `frac`. If
 * no ratio reaches `frac`: the ratio from which on it no longer grows, and *reached
 * becomes false. NaN if the spread is empty. */
double ms_error_spread_ratio(const ms_error_spread *spread, const ms_error_class *class,
                             double frac, bool *reached);
/* Whether the spread contains the run `id` of a source. */
bool ms_error_spread_has(const ms_error_spread *spread, const char *source,
                         const char *id);

/* Loads a file meshsim.spread/1 by its name in configs/spreads/; *out is NULL if there is
 * none. Errors: MS_EIO, MS_EINPUT if it is malformed. */
ms_status ms_error_spread_load(ms_ctx *cx, const char *name, const ms_error_spread **out);
ms_status ms_error_spread_read(ms_ctx *cx, ms_jval root, ms_error_spread *out);
void ms_error_spread_write_json(ms_jout *out, const ms_error_spread *spread);

#endif
