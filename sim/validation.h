/* Predictions beside published measurements: errors by source, and whether layouts are
 * ordered as they were measured. */
#ifndef MS_SIM_VALIDATION_H
#define MS_SIM_VALIDATION_H

#include "costmodel/statistics.h"
#include "sim/runs.h"

/* Prediction of one run; NaN where it was not predicted or not measured. */
typedef struct ms_run_score {
    double step_s;
    /* the interval that is to hold the measurement (sim/runs_spread.h); NaN: none */
    double step_low_s, step_high_s;
    double peak_bytes; /* of the rank whose memory was measured */
    /* where the stack holds gathered inputs or not, one cannot say which (ms_stack's
     * holds_gathers_alone): without them, and with them and one micro-batch more;
     * otherwise both peak_bytes */
    double peak_low_bytes, peak_high_bytes;
    /* the interval of the peak, as of the step; NaN: none */
    double peak_interval_low_bytes, peak_interval_high_bytes;
    double step_error_frac; /* (predicted - measured) / measured */
    double peak_error_frac;
    /* what the predicted step is made of, as in ms_prediction; they sum to step_s */
    double compute_s, exposed_comm_s, bubble_s, optimizer_s, host_s;
    double mfu_frac;  /* predicted */
    bool priced;      /* at least one error is known */
    bool over_memory; /* predicted not to fit the GPU that it ran on */
} ms_run_score;

/* Errors of one source, or of all sources with fewer than 8 priced rows together
 * ("pooled"); or of the runs that share something else. */
typedef struct ms_source_score {
    const char *source; /* or what they share */
    int num_runs;
    double mean_ape_frac, median_ape_frac, p90_ape_frac;
    double bias_frac;     /* median signed error */
    double coverage_frac; /* of measurements in their intervals; NaN: no intervals */
} ms_source_score;

typedef struct ms_error_summary {
    int num_runs;
    double macro_median_ape_frac; /* mean over sources of their medians */
    double macro_p90_ape_frac;
    /* mean over sources, share of all runs; NaN: no intervals */
    double macro_coverage_frac, run_coverage_frac;
    /* of the mean, had there been other sources like these */
    ms_mean_interval macro_coverage;
    /* rows predicted more than 2 % below the measurement; of peaks that are a range the
     * upper end counts */
    double under_frac;
    double under_3_frac; /* the same with 3 % */
    int num_ranges;      /* of peaks */
    /* of them that hold the measurement, 2 % beyond either end included; NaN: none */
    double range_cover_frac;
    int num_sources;
    const ms_source_score *sources; /* by name, "pooled" last */
} ms_error_summary;

/* Layouts of one workload: source, model, GPU type and count, precision, sequence and
 * global batch are shared. */
typedef struct ms_ranking_group {
    const char *group;
    const char *source;
    int num_layouts;
    double kendall_tau, top1_regret_frac; /* NaN: undefined */
} ms_ranking_group;

/* The groups of one source that have at least 8 layouts. */
typedef struct ms_ranking_summary {
    const char *source;
    int num_groups;
    double mean_kendall_tau, median_regret_frac;
} ms_ranking_summary;

typedef struct ms_validation {
    const ms_published_runs *runs;
    const ms_run_score *scores; /* (num_runs) */
    int num_complete, num_priced, num_changed_mathematics;
    int num_over_memory; /* priced runs predicted not to fit, although they ran */
    ms_error_summary time, memory;
    int num_groups; /* with at least two layouts */
    const ms_ranking_group *groups;
    int num_summaries; /* of rankings, by the names of sources */
    const ms_ranking_summary *summaries;
    /* what was asked for besides; none: 0 and NULL */
    int num_groupings;
    const struct ms_run_grouping *groupings; /* sim/validation_by.h */
    int num_worst;
    const int *worst; /* sim/validation_worst.h */
} ms_validation;

#define MS_UNDER_FRAC                                                                    \
    0.02 /* memory further below the truth than this counts as under-predicted */
#define MS_UNDER_3_FRAC     0.03
#define MS_POOLED_SOURCES   8 /* sources with fewer rows are pooled */
#define MS_RANKING_TIE_FRAC 0.05
#define MS_RANKING_LAYOUTS  8 /* groups with fewer say little each, and are many */

/* Predicts every run without a reason, with the intervals that
 * configs/spreads/step-time.json and memory.json give, left out the sources of its own
 * runs. A run that cannot be predicted gets a reason in `runs`. Lives in cx->arena. */
ms_status ms_validate(ms_ctx *cx, ms_published_runs *runs, ms_validation *out);
/* The scores from errors that are known already; `scores` has one entry per run. */
void ms_validation_summarise(ms_arena *arena, const ms_published_runs *runs,
                             const ms_run_score *scores, ms_validation *out);
/* Signed errors of runs, none of them NaN. */
ms_source_score ms_score_errors(ms_arena *arena, const char *name, const double *errors,
                                int num_errors);

/* meshsim.validation/1, with the rows under "runs". Errors are fractions. */
void ms_validation_write_json(ms_jout *out, const ms_validation *validation);
/* How many measurements lie in their intervals, as the end of a line. */
void ms_coverage_print(FILE *out, const ms_error_summary *summary);
/* Tables for people; with `rows` one line per predicted run before them. */
void ms_validation_print(FILE *out, ms_arena *arena, const ms_validation *validation,
                         bool rows);

#endif
