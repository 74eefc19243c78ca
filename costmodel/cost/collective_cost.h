/* Time of one collective over a group, by algorithm and level of the network. */
#ifndef MS_COSTMODEL_COST_COLLECTIVE_COST_H
#define MS_COSTMODEL_COST_COLLECTIVE_COST_H

#include "costmodel/cost/collective_algorithm.h"
#include "costmodel/profile/profile.h"

/* Checks that the profile has coefficients for the cluster's network, if it has one, as
 * cost laws need; MS_EINPUT otherwise. */
ms_status ms_network_check(ms_ctx *cx, const ms_cluster *cluster,
                           const ms_profile *profile);

/* The cost law of a collective over one group, affine-root in its bytes: t(S) = min over
 * algorithms of alpha + S * beta + min(ramp * sqrt(alpha * S * beta), most_ramp). S is
 * the nccl-tests size: the total of the gathered or reduced tensor; for all-to-all what
 * one rank holds. With a measured curve, on a cluster of one level: the curve's seconds
 * within its sizes, outside those of the form above times measured over fitted at the
 * nearer end. */
#define MS_MAX_LAW_ALGORITHMS 3 /* algorithms of one cost law */
typedef struct ms_collective_law {
    int num_algorithms; /* 0: a group of one rank, which takes no time */
    struct {
        double alpha_s, beta_s_per_byte, ramp;
        double most_ramp_s; /* INFINITY if unlimited */
        ms_algorithm kind;
    } algorithm[MS_MAX_LAW_ALGORITHMS];
    const ms_sweep_curve *measured; /* measured curve; NULL if none */
    double wire_frac; /* all-to-all: bytes between domains over bytes of all copies */
} ms_collective_law;

/* Makes the cost law from all algorithms of a collective; MS_SEND: to the next rank. */
ms_collective_law ms_collective_law_make(ms_collective collective, const ms_span *span,
                                         const ms_cluster *cluster,
                                         const ms_profile *profile);
/* Cost law of the all-to-all of tokens to experts by kernels that write to other ranks at
 * the rate of rings, send a token to a domain once for all of its experts there, and
 * forward it over the links: DeepEP (deepseek-ai/DeepEP README), Megatron's flex
 * dispatcher. `wire_frac` of the copies cross domains. */
ms_collective_law ms_token_exchange_law_make(const ms_span *span,
                                             const ms_cluster *cluster,
                                             const ms_profile *profile, double wire_frac);
/* Distinct places per copy of a token that goes to k = top_k of N places: N (1 - (1 -
 * 1/N)^k) / k. */
double ms_shared_copies_frac(double places, long top_k);
/* Seconds of a collective of `size_bytes`; 0 for 0 bytes. */
double ms_collective_s(const ms_collective_law *law, double size_bytes);
/* Seconds by one algorithm, without measured curves; NaN if the law lacks it. */
double ms_collective_by_s(const ms_collective_law *law, ms_algorithm algorithm,
                          double size_bytes);
/* The fastest algorithm for a size; MS_ALGORITHM_NONE for a group of one rank. */
ms_algorithm ms_collective_algorithm(const ms_collective_law *law, double size_bytes);
/* Start-up seconds of the fastest algorithm, in which no byte moves. */
double ms_collective_latency_s(const ms_collective_law *law, double size_bytes);

#endif
