/* Seconds of one collective over a group of ranks, by algorithm and network level. */
#ifndef MS_COSTMODEL_COST_COLLECTIVE_COST_H
#define MS_COSTMODEL_COST_COLLECTIVE_COST_H

#include "costmodel/cost/collective_algorithm.h"
#include "costmodel/profile/profile.h"

/* MS_EINPUT if the profile lacks cost coefficients for the network of the cluster. */
ms_status ms_network_check(ms_ctx *cx, const ms_cluster *cluster,
                           const ms_profile *profile);

/* The cost law of a collective over one group: seconds t(S) = min over algorithms of
 * alpha + S * beta + min(ramp * sqrt(alpha * S * beta), most_ramp). S is the nccl-tests
 * size: bytes of the whole gathered or reduced tensor; for all-to-all what one rank
 * holds. If `measured` is given (cluster of one level), its seconds apply to sizes in the
 * curve; other sizes take t(S) * measured / fitted seconds at its nearer end. */
#define MS_MAX_LAW_ALGORITHMS 3 /* most algorithms of one cost law */
typedef struct ms_collective_law {
    int num_algorithms; /* 0: a group of one rank (0 s) */
    struct {
        double alpha_s, beta_s_per_byte, ramp;
        double most_ramp_s; /* limit of the ramp term, or INFINITY */
        ms_algorithm kind;
    } algorithm[MS_MAX_LAW_ALGORITHMS];
    const ms_sweep_curve *measured; /* measured seconds by size; NULL: not measured */
    double wire_frac; /* share of token copies sent between domains; 1: all */
} ms_collective_law;

/* Makes the cost law from all algorithms of a collective. MS_SEND is to the next rank. */
ms_collective_law ms_collective_law_make(ms_collective collective, const ms_span *span,
                                         const ms_cluster *cluster,
                                         const ms_profile *profile);
/* Cost law of the all-to-all of tokens to experts by kernels that write to other ranks at
 * the rate of rings, send a token to a domain once for all of its experts there, and
 * forward it over the links: DeepEP (deepseek-ai/DeepEP README), Megatron's flex
 * dispatcher. `wire_frac`: share of the copies that is sent between domains. */
ms_collective_law ms_token_exchange_law_make(const ms_span *span,
                                             const ms_cluster *cluster,
                                             const ms_profile *profile, double wire_frac);
/* Copies sent over copies routed, if a token that goes to k = top_k of N places is sent
 * to each distinct place once: N (1 - (1 - 1/N)^k) / k. */
double ms_shared_copies_frac(double places, long top_k);
/* Seconds of a collective of `size_bytes`; 0 for 0 bytes. */
double ms_collective_s(const ms_collective_law *law, double size_bytes);
/* Seconds by one algorithm, measured curves ignored; NaN if it is not in the law. */
double ms_collective_by_s(const ms_collective_law *law, ms_algorithm algorithm,
                          double size_bytes);
/* The fastest algorithm for a size; MS_ALGORITHM_NONE for a group of one rank. */
ms_algorithm ms_collective_algorithm(const ms_collective_law *law, double size_bytes);
/* Seconds in which the bytes move at the rate of the slowest links (beta S), by the
 * algorithm fastest for this size: ms_collective_s without latency and ramp. */
double ms_collective_wire_s(const ms_collective_law *law, double size_bytes);
/* Seconds before the first byte moves (alpha), by the algorithm fastest for this size. */
double ms_collective_latency_s(const ms_collective_law *law, double size_bytes);

#endif
