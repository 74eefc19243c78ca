/* Constants that only published runs tell: sustained rates, habits of frameworks, bytes
 * that they keep. Each is one number for one or several figures of profiles and stacks,
 * and configs/fits/ lists them. They are fitted together: the least mean over sources of
 * a robust error of the predicted step time, or of the predicted peak memory. What a
 * source's own error is worth is told by constants that were fitted without it. */
#ifndef MS_SIM_RUNS_FIT_H
#define MS_SIM_RUNS_FIT_H

#include "base/json.h"
#include "sim/run_measurement.h"

#define MS_MAX_FIT_CONSTANTS 64
#define MS_MAX_FIT_CHOICES   9

/* A figure of a file in configs/: of the runs' own copy of it. */
typedef struct ms_fit_target {
    const char *name; /* "profiles/h100-sxm gemm.bf16.sustained" */
    double *value;    /* NULL: no run uses the file */
    double shipped;
} ms_fit_target;

typedef struct ms_fit_constant {
    const char *name;
    double low, high; /* that are tried */
    int num_choices;  /* 0: anything between them; otherwise these values alone */
    double choices[MS_MAX_FIT_CHOICES]; /* ascending */
    /* mixtures of experts do not tell it: they take time that no law has */
    bool without_experts;
    double unknown; /* its value where no run is left that would tell */
    const char *unknown_source;
    /* where the search begins: beside another constant that is 0, one that it multiplies
     * has no slope */
    double start;
    int num_targets;
    ms_fit_target *targets;
    /* of the last fit */
    double value;
    double value_low, value_high; /* 90 % (ms_runs_fit_intervals); NaN: not asked for */
    int num_rows, num_sources;    /* that tell it: whose prediction it changes */
    int num_changed;              /* they and others, whose prediction it changes too */
    const int *rows; /* (num_changed): indices of runs, first of those that tell */
} ms_fit_constant;

typedef struct ms_runs_fit {
    ms_published_runs *runs;
    ms_measurement measurement; /* that it is fitted to */
    struct ms_run_prices *prices;
    ms_arena *arena; /* of work in progress */
    int num_constants;
    ms_fit_constant *constants;
    int num_sources;
    const char **sources; /* by name */
    /* (num_runs); -1: the run does not have the measurement, or cannot be predicted */
    const int *source_of;
    /* (num_runs): all rows of a source weigh as one, of small sources as many as they
     * have */
    const double *weight_of;
} ms_runs_fit;

/* Reads a list of constants, by its name in configs/fits/ or a path, and binds it to the
 * runs, whose profiles and stacks become copies that the fit changes. Everything lives in
 * cx->arena but what ms_runs_fit_close closes after MS_OK. MS_EIO, MS_EINPUT: unknown,
 * malformed, or a figure that its file does not have; files that no run uses are not
 * looked at. */
ms_status ms_runs_fit_load(ms_ctx *cx, const char *name, ms_published_runs *runs,
                           ms_runs_fit *out);
/* The same from a document. */
ms_status ms_runs_fit_read(ms_ctx *cx, ms_jval root, ms_published_runs *runs,
                           ms_runs_fit *out);
void ms_runs_fit_close(ms_runs_fit *fit);

/* All constants from the runs of all sources but `left_out` (-1: none), beginning at
 * their starts. A constant whose rows are then gone keeps its own. The same result every
 * time. */
void ms_runs_fit_make(ms_runs_fit *fit, int left_out);

/* After a fit of all sources: intervals of its constants, the 5th and 95th percentile of
 * 200 fits to sources drawn again with replacement (cluster bootstrap: Efron and
 * Tibshirani 1993, chapter 8) in the predictions' responses around the fit. A constant
 * that a draw does not tell is then its unknown value. The same result every time. */
void ms_runs_fit_intervals(ms_runs_fit *fit);

/* Scores of every run, each by constants that were fitted without its source; the fit of
 * all sources stands afterwards. */
ms_status ms_runs_fit_cross_validate(ms_ctx *cx, ms_runs_fit *fit, ms_run_score *scores);

#endif
