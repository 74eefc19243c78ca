/* How far the errors of two plans' predicted step times differ, where both plans are of
 * one stack, cluster and workload: the errors that do not cancel between them. From it
 * follow the probability that the plan predicted faster is faster, and the lead below
 * which plans are tied. [13.8] of docs/formulas. */
#ifndef MS_COSTMODEL_CALIBRATE_RANKING_SPREAD_H
#define MS_COSTMODEL_CALIBRATE_RANKING_SPREAD_H

#include "base/json.h"

#define MS_RANKING_SPREAD "ranking" /* file in configs/spreads/ */
#define MS_RANKING_POINTS 20        /* most error values of a source */
#define MS_RANKING_MOST_GAP                                                              \
    0.25 /* widest |ln| of predicted times of a pair that counts */
/* Two plans are tied if the one predicted faster is so with less than this probability:
 * odds of less than two to one. */
#define MS_TIE_PROBABILITY (2.0 / 3.0)

/* Two layouts of one workload, measured side by side with one stack. */
typedef struct ms_ranking_pair {
    const char *source;
    double predicted, measured; /* ln(step time of one / step time of the other) */
    double weight;              /* weight among the pairs of the source */
} ms_ranking_pair;

/* Errors |predicted - measured| of the pairs of one source. */
typedef struct ms_ranking_source {
    const char *name;
    long num_pairs;
    int num_points;
    const double *errors; /* (num_points): quantiles of the errors, ascending */
} ms_ranking_source;

typedef struct ms_ranking_spread {
    const char *source; /* data and command that the spread was made from */
    int num_sources;
    const ms_ranking_source *sources;
} ms_ranking_spread;

/* Whether the pair counts: |predicted| is at most MS_RANKING_MOST_GAP. Plans further
 * apart differ more, and no search needs to decide between them. */
bool ms_ranking_pair_counts(const ms_ranking_pair *pair);

/* Makes a spread of the pairs that count, in any order. It lives in the arena and points
 * to the names of the pairs' sources. */
ms_ranking_spread ms_ranking_spread_make(ms_arena *arena, const ms_ranking_pair *pairs,
                                         long num_pairs);

/* Probability that plan A is faster than B, whose predicted step times are a_s and b_s:
 * 1/2 + S / (S + 1) F(|ln(b_s / a_s)|) / 2 if A is predicted faster, else 1 less it. F:
 * mean over the S sources, without `left_out` (NULL: none), of the share of errors up to
 * that gap; errors have either sign alike. One more source may have any error (Dunn,
 * Wasserman and Ramdas 2022). NaN without a spread, sources or step times. */
double ms_faster_probability(const ms_ranking_spread *spread, double a_s, double b_s,
                             const char *left_out);

/* The least b_s / a_s - 1 at which ms_faster_probability reaches `probability`; infinite
 * if it never does, 0 without a spread. */
double ms_tie_band_frac(const ms_ranking_spread *spread, double probability);

/* Loads configs/spreads/NAME.json, schema meshsim.ranking_spread/1; *out is NULL if there
 * is none. Errors: MS_EIO, MS_EINPUT if it is malformed. */
ms_status ms_ranking_spread_load(ms_ctx *cx, const char *name,
                                 const ms_ranking_spread **out);
ms_status ms_ranking_spread_read(ms_ctx *cx, ms_jval root, ms_ranking_spread *out);
void ms_ranking_spread_write_json(ms_jout *out, const ms_ranking_spread *spread);

#endif
