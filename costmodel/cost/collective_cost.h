/* Time of one collective over a group, by algorithm and level of the network. */
#ifndef MS_COSTMODEL_COST_COLLECTIVE_COST_H
#define MS_COSTMODEL_COST_COLLECTIVE_COST_H

#include "costmodel/cost/collective_algorithm.h"
#include "costmodel/profile/profile.h"

/* The profile must have coefficients for the cluster's network, if it has one: MS_EINPUT
 * otherwise. Laws rely on it. */
ms_status ms_network_check(ms_ctx *cx, const ms_cluster *cluster,
                           const ms_profile *profile);

/* The law of a collective over one group, affine-root in its bytes, resolved once per
 * (collective, span):
 *   t(S) = min over algorithms of alpha + S * beta + min(ramp * sqrt(alpha * S * beta),
 *   most_ramp).
 * S is the nccl-tests size: the total of the gathered or reduced tensor; for all-to-all
 * what one rank holds. With a measured curve, on a cluster of one level: the curve's
 * seconds within its sizes, outside those of the form above times measured over fitted at
 * the nearer end. */
#define MS_MAX_LAW_ALGORITHMS 3 /* for one collective over one group */
typedef struct ms_collective_law {
    int num_algorithms; /* 0: group of one rank, takes no time */
    struct {
        double alpha_s, beta_s_per_byte, ramp;
        double most_ramp_s; /* INFINITY: no limit */
        ms_algorithm kind;
    } algorithm[MS_MAX_LAW_ALGORITHMS];
    const ms_sweep_curve *measured; /* NULL: none */
    /* of an all-to-all's bytes between domains that are sent: below 1 where ranks of a
     * domain share copies */
    double wire_frac;
} ms_collective_law;

/* All algorithms of costmodel/cost/collective_algorithm.h that carry out the collective there.
 * MS_SEND: between neighbours of the group. */
ms_collective_law ms_collective_law_make(ms_collective collective, const ms_span *span,
                                         const ms_cluster *cluster,
                                         const ms_profile *profile);
/* All-to-all of tokens to their experts by kernels that write to other ranks at the rate
 * of rings, send a token to a domain once, however many of its ranks have experts of it,
 * and hand it on over the links: DeepEP's kernels (deepseek-ai/DeepEP README), Megatron's
 * flex dispatcher. `wire_frac` of the copies cross domains. */
ms_collective_law ms_token_exchange_law_make(const ms_span *span,
                                             const ms_cluster *cluster,
                                             const ms_profile *profile, double wire_frac);
/* Copies of a token that go to different places over all its copies, when its top_k
 * experts are drawn evenly: N (1 - (1 - 1/N)^k) / k with N places. */
double ms_shared_copies_frac(double places, long top_k);
/* Seconds; 0 for 0 bytes. */
double ms_collective_s(const ms_collective_law *law, double size_bytes);
/* Seconds by this algorithm alone, without measured curves; NaN when the law has none
 * such. */
double ms_collective_by_s(const ms_collective_law *law, ms_algorithm algorithm,
                          double size_bytes);
/* The algorithm that ms_collective_s takes; MS_ALGORITHM_NONE for a group of one rank. */
ms_algorithm ms_collective_algorithm(const ms_collective_law *law, double size_bytes);
/* Seconds of that algorithm's start, in which no byte moves. */
double ms_collective_latency_s(const ms_collective_law *law, double size_bytes);

#endif
