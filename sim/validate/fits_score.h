/* Scores P(fit), the probability that a plan fits device memory: layouts that ran against
 * layouts of the same grid that crashed or ran out of memory, and measured peaks against
 * capacities that a prediction says hold them with a given probability. */
#ifndef MS_SIM_VALIDATE_FITS_SCORE_H
#define MS_SIM_VALIDATE_FITS_SCORE_H

#include "sim/validate/validation.h"

/* Layouts whose P(fit) is in a range: `from` <= P < `to`; the last range ends at 1 and
 * includes it. */
typedef struct ms_fits_bin {
    double from, to;
    int num;
    double finished_frac; /* NaN if the range is empty */
    /* finished_frac of the layouts that memory alone decides: each counts as 1 less its
     * model's share of crashes at any fill (ms_fits_model.floor_frac); at most 1 */
    double finished_of_rest_frac;
} ms_fits_bin;

/* Layouts of one source and model. */
typedef struct ms_fits_model {
    const char *source, *model;
    int num_finished, num_unfinished;
    /* layouts predicted to need less than half of the device, and the share of them that
     * did not finish, for reasons other than memory; NaN if there are none */
    int num_low;
    double floor_frac;
} ms_fits_model;

#define MS_FITS_BINS 12

typedef struct ms_fits_score {
    int num_finished, num_unfinished;
    double brier; /* mean of (P - 1 if finished, else P)^2; NaN without layouts */
    /* probability that a finished layout has the higher P(fit) of a pair with an
     * unfinished one; equal ones count half; NaN unless there are both */
    double auc;
    ms_fits_bin bins[MS_FITS_BINS];
    int num_models;
    const ms_fits_model *models;
} ms_fits_score;

/* Scores the runs whose source and model also has unfinished runs: others merely show that
 * what ran fits. Runs without fits_probability do not count. Lives in the arena. */
ms_fits_score ms_fits_score_make(ms_arena *arena, const ms_pubruns *runs,
                                 const ms_pubrun_score *scores);

/* Shares of measured peaks that capacities of a given P(fit) hold; runs without
 * peak_rank_frac do not count. */
void ms_fits_capacities(const ms_pubruns *runs, const ms_pubrun_score *scores,
                        ms_fits_capacity out[MS_FITS_CAPACITIES]);

/* Writes "fits": {...}; "capacities": [...]. */
void ms_fits_score_write_json(ms_jout *out, const ms_fits_score *score);
void ms_fits_capacities_write_json(ms_jout *out,
                                   const ms_fits_capacity capacities[MS_FITS_CAPACITIES]);

#endif
