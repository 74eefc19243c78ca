/* Folder sim/validate: published tables read, predicted, scored, and constants fitted to
 * them; how one row is predicted is in sim/step.
 *
 * Predictions compared with published measurements: errors by source, and whether layouts
 * are ranked as measured. */
#ifndef MS_SIM_VALIDATE_VALIDATION_H
#define MS_SIM_VALIDATE_VALIDATION_H

#include "costmodel/calibrate/ranking_spread.h"
#include "costmodel/calibrate/statistics.h"
#include "sim/validate/pubrun.h"
#include "sim/validate/run_rules.h"

/* Prediction and errors of one run; NaN where it was not predicted or not measured. */
typedef struct ms_pubrun_score {
    double step_s;
    /* 90 % interval of the measurement (sim/validate/pubrun_spread.h); NaN if none */
    double step_low_s, step_high_s;
    double peak_bytes; /* predicted peak of the rank whose memory was measured */
    /* Range of the peak. For a stack that may or may not save all-gathered inputs
     * (ms_stack's holds_gathers_alone): the peak without them, and with them and one more
     * micro-batch. Otherwise both ends are peak_bytes. */
    double peak_low_bytes, peak_high_bytes;
    /* 90 % interval of the measured peak; NaN if none */
    double peak_interval_low_bytes, peak_interval_high_bytes;
    /* Probability that the worst rank's memory fits its device, as ms_predict finds it
     * (ms_fits_probability). What it is made of: that rank's predicted peak, memory
     * outside it, and the device's memory. */
    double fits_probability, worst_peak_bytes, outside_bytes, capacity_bytes;
    /* probability of a peak at most as large as the measured one, by errors of other
     * sources; NaN if no peak was measured */
    double peak_rank_frac;
    double step_error_frac; /* relative errors, (predicted - measured) / measured */
    double peak_error_frac;
    /* components of the predicted step, as in ms_prediction; their sum is step_s */
    double compute_s, exposed_comm_s, bubble_s, optimizer_s, host_s;
    double mfu_frac; /* predicted MFU */
    /* the error of step time or of peak is known; of an unfinished run, its peak */
    bool priced;
    bool over_memory; /* predicted not to fit the GPU's memory */
} ms_pubrun_score;

/* Errors of a group of runs: one source, all sources with fewer than 8 priced rows
 * ("pooled"), or runs with the same value of a key. */
typedef struct ms_source_score {
    const char *source; /* name of the source, or value of the key */
    int num_runs;
    double mean_ape_frac, median_ape_frac, p90_ape_frac;
    double bias_frac; /* median signed error */
    /* share of measurements in their intervals; NaN if no intervals */
    double coverage_frac;
} ms_source_score;

typedef struct ms_error_summary {
    int num_runs;
    double macro_median_ape_frac; /* mean over sources of their median errors */
    double macro_p90_ape_frac;
    /* mean coverage_frac of the sources; share of all runs covered; NaN: no intervals */
    double macro_coverage_frac, run_coverage_frac;
    /* bootstrap interval, over sources, of macro_coverage_frac */
    ms_mean_interval macro_coverage;
    /* Share of rows predicted more than 2 % below the measurement; for a peak predicted
     * as a range the upper end counts. */
    double under_frac;
    double under_3_frac; /* share of rows predicted more than 3 % below the measurement */
    int num_ranges;      /* peaks predicted as a range */
    /* Share of peak ranges that contain the measurement, extended by 2 % at either
     * end; NaN if none. */
    double range_cover_frac;
    int num_sources;
    const ms_source_score *sources; /* sorted by name, "pooled" last */
} ms_error_summary;

/* Ranking of the layouts of one workload: runs with equal source, model, GPU type and
 * count, precision, sequence length and global batch. */
typedef struct ms_ranking_group {
    const char *group;
    const char *source;
    int num_layouts;
    /* Kendall's rank correlation; how much slower than the fastest layout (measured) the
     * one predicted fastest is; NaN if undefined */
    double kendall_tau, top1_regret_frac;
} ms_ranking_group;

/* Mean tau and median regret over one source's groups of at least 8 layouts. */
typedef struct ms_ranking_summary {
    const char *source;
    int num_groups;
    double mean_kendall_tau, median_regret_frac;
} ms_ranking_summary;

/* Pairs of layouts of one group and stack, sorted by source. */
typedef struct ms_ranking_pairs {
    int num, capacity;
    ms_ranking_pair *of;
} ms_ranking_pairs;

/* How often the layout predicted faster, by a lead from from_frac to to_frac, was
 * measured faster; means over sources, but for the last. */
typedef struct ms_ranking_bin {
    double from_frac, to_frac; /* slower step time / faster one - 1 */
    int num_pairs, num_sources;
    double expected_frac;  /* mean of ms_faster_probability without the pair's source */
    double right_frac;     /* share of pairs measured in the predicted order */
    double all_right_frac; /* share of all pairs, each counted alike */
} ms_ranking_bin;
#define MS_RANKING_BINS 8 /* in the tie band, beyond it; six by the lead */

/* Capacities at which the prediction says P(fit), and the share of measured peaks that
 * are at most as large: `held_frac` of all runs, and as a mean over sources, small ones
 * pooled. NaN without peaks. */
typedef struct ms_fits_capacity {
    double probability;
    int num_runs;
    double held_frac, macro_held_frac;
} ms_fits_capacity;

#define MS_FITS_CAPACITIES 5

typedef struct ms_validation {
    const ms_pubruns *runs;
    const ms_pubrun_score *scores; /* scores of all runs (num_runs) */
    int num_complete, num_priced, num_changed_mathematics;
    int num_over_memory; /* runs predicted not to fit, although they ran */
    ms_error_summary time, memory;
    int num_groups; /* workloads with at least two layouts */
    const ms_ranking_group *groups;
    ms_fits_capacity capacities[MS_FITS_CAPACITIES];
    ms_rule_breaches breaches;        /* layouts that rules of their frameworks refuse */
    const struct ms_fits_score *fits; /* P(fit) of finished and of unfinished runs */
    int num_summaries;                /* ranking summaries, sorted by source */
    const ms_ranking_summary *summaries;
    ms_ranking_pairs pairs;
    int num_bins; /* MS_RANKING_BINS; 0 if the pairs were not judged */
    const ms_ranking_bin *bins;
    /* Optional results; 0 and NULL if not requested. */
    int num_groupings;
    const struct ms_pubrun_grouping *groupings; /* errors by the keys of --by */
    int num_worst;
    const int *worst; /* indices of runs, for --worst (sim/validate/validation_worst.h) */
} ms_validation;

#define MS_UNDER_FRAC                                                                    \
    0.02 /* memory predictions more than this below the measurement are too low */
#define MS_UNDER_3_FRAC     0.03
#define MS_POOLED_SOURCES   8 /* sources with fewer priced runs are pooled */
#define MS_RANKING_TIE_FRAC 0.05
#define MS_RANKING_LAYOUTS  8 /* groups with fewer layouts are ranked in the JSON only */

/* Predicts every run whose `reason` is NULL. Intervals come from
 * configs/spreads/step-time.json and memory.json, without the spread of the run's own
 * source; bins of pairs from ranking.json. A run that cannot be predicted gets a `reason` in `runs`. *out lives in
 * cx->arena. Error: a spread file cannot be read or is malformed. */
ms_status ms_validate(ms_ctx *cx, ms_pubruns *runs, ms_validation *out);
/* Summarizes scores that are already known, one per run. */
void ms_validation_summarise(ms_arena *arena, const ms_pubruns *runs,
                             const ms_pubrun_score *scores, ms_validation *out);
/* Sets the bins of the validation's pairs; without a spread or pairs nothing. */
void ms_validation_judge_pairs(ms_arena *arena, const ms_ranking_spread *spread,
                               ms_validation *out);
/* Summary of signed errors, none of them NaN; `name` becomes its source. */
ms_source_score ms_score_errors(ms_arena *arena, const char *name, const double *errors,
                                int num_errors);

/* Writes JSON of schema meshsim.validation/1: rows under "runs", errors as fractions. */
void ms_validation_write_json(ms_jout *out, const ms_validation *validation);

#endif
