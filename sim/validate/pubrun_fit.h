/* Fits constants to published runs: sustained rates, conventions of frameworks, bytes
 * that they hold. Each constant is one value for one or several numbers of profiles and
 * stacks; configs/fits/ lists them. All are fitted together, to the least mean over
 * sources of a robust error of the predicted step time, or of the predicted peak memory.
 * The error on a source not seen before is estimated by constants fitted without it. */
#ifndef MS_SIM_VALIDATE_PUBRUN_FIT_H
#define MS_SIM_VALIDATE_PUBRUN_FIT_H

#include "base/json.h"
#include "sim/validate/pubrun_measurement.h"

#define MS_MAX_FIT_CONSTANTS 64
#define MS_MAX_FIT_CHOICES   9

/* A number in a file of configs/ that a constant sets, in the copy that the runs use. */
typedef struct ms_fit_target {
    const char *name; /* file and key: "profiles/h100-sxm gemm.bf16.sustained" */
    double *value;    /* NULL if no run uses the file */
    double shipped;
} ms_fit_target;

typedef struct ms_fit_constant {
    const char *name;
    double low, high; /* range of the constant */
    int num_choices;  /* 0: any value in the range; else only `choices` */
    double choices[MS_MAX_FIT_CHOICES]; /* allowed values of the constant, ascending */
    /* Mixture-of-experts runs do not determine the constant: no cost law covers their
     * overhead. */
    bool without_experts;
    double unknown; /* constant's value when no run determines it */
    const char *unknown_source;
    /* Value where the search begins. Not 0 if the constant multiplies another one, since
     * predictions would not depend on the other. */
    double start;
    int num_targets;
    ms_fit_target *targets;
    /* The members below are results of the last fit. */
    double value;
    /* 90 % interval (ms_pubruns_fit_intervals); NaN if not computed */
    double value_low, value_high;
    int num_rows, num_sources; /* rows and sources that determine the constant */
    int num_changed;           /* rows whose prediction depends on the constant */
    const int *rows; /* (num_changed): indices of runs, first those that determine it */
} ms_fit_constant;

typedef struct ms_pubruns_fit {
    ms_pubruns *runs;
    ms_measurement measurement; /* the measurement that is fitted */
    struct ms_pubrun_prices *prices;
    ms_arena *arena; /* scratch memory of a fit */
    int num_constants;
    ms_fit_constant *constants;
    int num_sources;
    const char **sources; /* names of the sources, sorted */
    /* (num_runs): index in `sources`; -1 if the run lacks the measurement, or cannot be
     * predicted */
    const int *source_of;
    /* (num_runs): 1 / number of rows of the run's source, but at most 1 / 8 */
    const double *weight_of;
} ms_pubruns_fit;

/* Reads a list of constants, by its name in configs/fits/ or a path, and binds it to
 * `runs`: their profiles and stacks become copies that the fit changes. Everything lives
 * in cx->arena but members that ms_pubruns_fit_close frees after MS_OK. Error statuses:
 * MS_EIO; MS_EINPUT if the list is unknown or malformed, or names a number that its file
 * lacks. Names of files that no run uses are ignored. */
ms_status ms_pubruns_fit_load(ms_ctx *cx, const char *name, ms_pubruns *runs,
                              ms_pubruns_fit *out);
/* Reads a list of constants from a parsed JSON document; otherwise as
 * ms_pubruns_fit_load. */
ms_status ms_pubruns_fit_read(ms_ctx *cx, ms_jval root, ms_pubruns *runs,
                              ms_pubruns_fit *out);
void ms_pubruns_fit_close(ms_pubruns_fit *fit);

/* Fits all constants to the runs of all sources except `left_out` (-1 for none),
 * beginning at their `start`. A constant without enough rows becomes its unknown value.
 * Deterministic. */
void ms_pubruns_fit_make(ms_pubruns_fit *fit, int left_out);

/* Sets intervals of the constants after a fit of all sources: the 5th and 95th percentile
 * of 200 fits, with approximated predictions, to sources resampled with replacement
 * (cluster bootstrap: Efron and Tibshirani 1993, chapter 8). A constant that a resample
 * does not determine takes its unknown value. Deterministic. */
void ms_pubruns_fit_intervals(ms_pubruns_fit *fit);

/* Scores every run by constants that were fitted without its source; afterwards the
 * constants are again those before the call. */
ms_status ms_pubruns_fit_cross_validate(ms_ctx *cx, ms_pubruns_fit *fit,
                                        ms_pubrun_score *scores);

#endif
