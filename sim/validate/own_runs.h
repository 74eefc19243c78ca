/* Corrects coefficients of a stack and a profile by a user's own measured runs. A list
 * (configs/fits/own-runs.json) names constants with the width of what is known of them
 * beforehand; few runs move them by penalised least squares
 * (costmodel/calibrate/penalised.h), step times and peaks apart. */
#ifndef MS_SIM_VALIDATE_OWN_RUNS_H
#define MS_SIM_VALIDATE_OWN_RUNS_H

#include "base/json.h"
#include "sim/validate/pubrun_measurement.h"

#define MS_MAX_OWN_CONSTANTS 64

/* One correction x, in widths, that moves every figure that a pattern matches: from c to
 * c exp(width x) ("log") or to c + width x, at most to the figure's limits. */
typedef struct ms_own_constant {
    const char *name, *source; /* source: where the width comes from */
    int measurement;           /* an ms_measurement */
    int scale;                 /* 0: log, 1: linear */
    double width;
    double low, high; /* limits of the figures, besides those of their files; NaN: none */
    int num_patterns;
    const char **patterns; /* "profile gemm.*.efficiency", "stack tp_overlap" (fnmatch) */
} ms_own_constant;

typedef struct ms_own_list {
    double
        error[MS_NUM_MEASUREMENTS]; /* scatter of ln(predicted / measured) of one group */
    int num_constants;
    ms_own_constant *constants;
} ms_own_list;

/* Reads a list by its name in configs/fits/ or a path; lives in cx->arena. MS_EIO;
 * MS_EINPUT if it is unknown or malformed. */
ms_status ms_own_list_load(ms_ctx *cx, const char *name, ms_own_list *out);
ms_status ms_own_list_read(ms_ctx *cx, ms_jval root, ms_own_list *out);

/* A number of the group's profile or stack that a constant moves. */
typedef struct ms_own_figure {
    const char *file, *key; /* "profile" or "stack"; "gemm.bf16.efficiency" */
    ms_unit unit;
    double before, after;
    bool used; /* predictions of the group's runs depend on it */
} ms_own_figure;

typedef struct ms_own_move {
    const ms_own_constant *constant;
    double widths;    /* correction; 0 where no run tells anything */
    double deviation; /* standard deviation after the fit, in widths; 1: nothing learnt */
    int num_figures;
    ms_own_figure *figures; /* figures that have a value */
} ms_own_move;

/* Fit of one measurement of a group. */
typedef struct ms_own_fit {
    ms_measurement measurement;
    int num_rows, num_out_of_memory; /* measured runs; runs that ran out of memory */
    /* runs of the latter that are predicted to fit */
    int num_fitting_before, num_fitting_after;
    double before_ape_frac,
        after_ape_frac; /* medians over the measured runs; NaN: none */
    /* root mean squares of ln(predicted / measured) over them */
    double before_rms_frac, after_rms_frac;
    bool stopped; /* the solver stopped before it converged */
    int num_moves;
    ms_own_move *moves; /* constants of the list that match a figure */
} ms_own_fit;

/* Runs of one source, stack and device. */
typedef struct ms_own_group {
    const char *source;
    const char *stack, *profile;           /* names */
    const char *stack_file, *profile_file; /* names or paths by which they were loaded */
    int num_rows;
    int *rows;                  /* indices of runs that can be predicted */
    struct ms_own_files *files; /* profiles and stacks of the rows, and copies */
    ms_own_fit fits[MS_NUM_MEASUREMENTS]; /* set by ms_own_runs_fit */
} ms_own_group;

typedef struct ms_own_runs {
    ms_pubruns *runs;
    const ms_own_list *list;
    const ms_pubrun_files *base;
    struct ms_pubrun_prices *prices;
    int num_groups;
    ms_own_group *groups;
} ms_own_runs;

/* Sorts runs into groups, in the order of their first rows; their profiles and stacks
 * become copies. `base`: the files that the runs were read by. Lives in
 * cx->arena, but for what ms_own_runs_close frees. */
void ms_own_runs_open(ms_ctx *cx, ms_pubruns *runs, const ms_own_list *list,
                      const ms_pubrun_files *base, ms_own_runs *out);
void ms_own_runs_close(ms_own_runs *own);

/* Fits each measurement of every group to all its runs. MS_EIO if a fit fails. */
ms_status ms_own_runs_fit(ms_ctx *cx, ms_own_runs *own);

/* Errors of a group's runs by coefficients that were corrected without them. */
typedef struct ms_own_held_out {
    const ms_own_group *group;
    ms_measurement measurement;
    int num_rows, num_fits; /* measured runs; fits without some of them */
    int num_predictions;    /* counted for runs that the fit did not see */
    double before_ape_frac, after_ape_frac; /* medians over these predictions */
} ms_own_held_out;

#define MS_OWN_TURNS 10 /* most fits of a group with layouts left out */
#define MS_OWN_FITS  4  /* most fits of a group to a given number of runs */

/* Predicts runs of each group by fits to others. With num_fitted 0 each layout (a plan and
 * a model) is left out in turn, several at once where there are more than 10; else a fit
 * sees num_fitted runs of the group, up to four times with different ones, spread evenly
 * over it, and predicts all runs of other layouts. *out: one element per group and
 * measurement that has predictions. MS_EIO if a fit fails. */
ms_status ms_own_runs_hold_out(ms_ctx *cx, ms_own_runs *own, int num_fitted, int *num_out,
                               ms_own_held_out **out);

#endif
