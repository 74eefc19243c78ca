/* When a plan counts as fitting device memory: by its predicted peak alone, or only if
 * its measured peak will fit with a given probability, and some memory stays free. */
#ifndef MS_SIM_STEP_MEMORY_RULE_H
#define MS_SIM_STEP_MEMORY_RULE_H

#include "costmodel/calibrate/error_spread.h"

/* Errors of peak memory are looked up as for plans with one GPU, since they do not depend
 * on the number of ranks. */
#define MS_PEAK_CLASS_GPUS 1

/* Probability with which plans of a search fit by default, and with which the layers of a
 * mixed cluster are divided where no rule is set, so that a plan alone is as in a search. */
#define MS_DEFAULT_MIN_FIT 0.95

/* A user's rule; all 0: a plan fits if its predicted peak does. */
typedef struct ms_memory_rule {
    double min_probability; /* least probability that the measured peak fits, below 1 */
    double headroom_frac;   /* share of device memory that stays free */
    double headroom_bytes; /* bytes that stay free; the larger of both headrooms counts */
} ms_memory_rule;

/* A rule for one device and stack. A plan needs peak_bytes * peak_factor + outside_bytes
 * (ms_needed_bytes), and fits if that is at most limit_bytes. */
typedef struct ms_memory_limit {
    ms_memory_rule rule;
    double limit_bytes; /* device memory without headroom */
    /* quantile min_probability of measured / predicted peaks; at least 1 */
    double peak_factor;
    /* whether errors of published runs are known; if not, peak_factor is 1 */
    bool knows_risk;
    /* no factor gives min_probability: nothing fits, and peak_factor is the one of the
     * largest probability that any plan can have, best_probability */
    bool out_of_reach;
    double best_probability;
} ms_memory_limit;

/* Makes the limit of a device with device_bytes of memory for plans of a stack.
 * peak_spread: errors of predicted peaks (spreads/memory, docs/formulas 13.6); NULL: not
 * known. A plan fits by the limit exactly if its ms_prediction.fits_probability is at
 * least min_probability and its predicted peak fits, both beside the headroom. */
ms_memory_limit ms_memory_limit_make(const ms_memory_rule *rule,
                                     const ms_error_spread *peak_spread,
                                     const char *stack, double device_bytes);
double ms_needed_bytes(const ms_memory_limit *limit, double peak_bytes,
                       double outside_bytes);
bool ms_fits_limit(const ms_memory_limit *limit, double needed_bytes);

/* Probability that a measured peak is at most room_bytes where peak_bytes are predicted;
 * NaN if no errors are known, 0 without room. */
double ms_fits_probability(const ms_error_spread *peak_spread, const char *stack,
                           double peak_bytes, double room_bytes);

#endif
