/* Lengths of training sequences: their distribution, and what packing or padding makes of
 * it. docs/formulas 2.2.3. */
#ifndef MS_COSTMODEL_PLAN_SEQUENCE_LENGTHS_H
#define MS_COSTMODEL_PLAN_SEQUENCE_LENGTHS_H

#include "base/csv.h"

/* How sequences of unequal lengths fill the positions that a step computes. */
typedef enum ms_packing {
    MS_NOT_PACKED, /* all sequences have the plan's sequence length */
    /* whole sequences one after another fill the sequence length; attention within each */
    MS_PACKED,
    MS_PADDED,             /* each sequence padded to the longest of its micro-batch */
    MS_PADDED_TO_SEQUENCE, /* each sequence padded to the plan's sequence length */
    MS_NUM_PACKINGS
} ms_packing;
/* "none" "packed" "padded" "padded-to-seq", NULL */
extern const char *const ms_packing_names[];

/* A distribution of lengths. */
typedef struct ms_lengths {
    int num;
    const double *tokens;  /* (num): lengths, ascending */
    const double *at_most; /* (num): probability of at most tokens[i]; the last is 1 */
    double mean_tokens;    /* E[l] */
    double mean_square;    /* E[l^2] */
} ms_lengths;

/* Log-normal lengths with this mean and standard deviation (0: all are equal); those above
 * `longest` are cut to it, those below 1 are 1. Arrays live in the arena. */
ms_lengths ms_lengths_make(ms_arena *arena, double mean_tokens, double deviation_tokens,
                           double longest_tokens);

/* Reads a CSV file with the columns "tokens" (a length, at least 1) and, perhaps,
 * "sequences" (how many have it; without it 1); lengths above `longest` are cut to it.
 * Arrays live in cx->arena. Errors: MS_EIO; MS_EINPUT at line and column. */
ms_status ms_lengths_load(ms_ctx *cx, const char *path, double longest_tokens,
                          ms_lengths *out);
/* Reads such a file from memory; `path` is for messages. */
ms_status ms_lengths_read(ms_ctx *cx, const char *path, ms_csv csv, double longest_tokens,
                          ms_lengths *out);

/* Distribution of the longest of n independent sequences: P(longest <= x) = P(l <= x)^n. */
ms_lengths ms_lengths_longest(ms_arena *arena, const ms_lengths *lengths, double n);

/* Tokens of the sequence that a random token belongs to, E[l^2] / E[l]. */
double ms_lengths_of_token(const ms_lengths *lengths);

/* Query-key pairs that a causal mask within sequences leaves per token: E[l (l + 1) / 2] /
 * E[l]; with a window w (0: none) at most the last w keys of each query count. */
double ms_lengths_pairs_per_token(const ms_lengths *lengths, double window_tokens);

/* Expected maximum of n independent standard normal values. */
double ms_normal_maximum(double n);

/* Attention on the slowest of `ranks` beyond the mean, as a share of it, when each rank fills `tokens` positions with sequences: the maximum of normal values with the
 * variance of a renewal reward process, Var(l^2 - l E[l^2] / E[l]) tokens / E[l]. */
double ms_lengths_excess_frac(const ms_lengths *lengths, double tokens, double ranks);

/* Pairs of the rank that has most over the mean of all, if each of `ranks` has a contiguous
 * chunk of `chunk_tokens` of the packed sequences: the last of k chunks that one sequence
 * fills has (2 k - 1) / k times their mean (Brandon et al. 2023, "Striped Attention"). */
double ms_lengths_chunk_factor(const ms_lengths *lengths, double chunk_tokens);

/* Standard deviation of the lengths, in tokens. */
double ms_lengths_deviation(const ms_lengths *lengths);

#endif
