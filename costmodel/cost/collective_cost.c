/* Cost laws of collectives. Inside one domain a ring of n ranks takes alpha + beta S +
 * ramp sqrt(alpha beta S) seconds for S bytes, with alpha = a0 + l steps, beta = (steps +
 * 1/2)/(n W), W the link rate, steps = n-1 (gather, scatter) or 2(n-1) (all-reduce). The
 * half step acts like a local copy and explains groups of two; the root is the transition
 * between latency and bandwidth. Form chosen, and a0, l and W fitted, on the nccl-tests
 * sweeps of ai-dynamo/aiconfigurator systems/data: A100, H100, B200, 2 to 8 GPUs. Across
 * domains the ring runs over links and NICs, and all-reduce also as a tree. On a full
 * mesh n GPUs of a domain of D use n - 1 of their D - 1 links; on a torus the links of
 * the dims that the group spans, both ways round (topo/torus.h). */
#include "costmodel/cost/collective_cost.h"

#include "base/number.h"
#include "costmodel/cost/collective_priv.h"

#include <assert.h>
#include <math.h>

ms_status ms_network_check(ms_ctx *cx, const ms_cluster *cluster,
                           const ms_profile *profile)
{
    if (cluster->num_levels == 1 || ms_profile_network(profile, cluster->network) != NULL)
        return MS_OK;
    const char *names[MS_MAX_NETWORKS];
    for (int i = 0; i < profile->num_networks; i++)
        names[i] = profile->networks[i].name;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "profile \"%s\" has no coefficients for network \"%s\" of cluster \"%s\"",
            profile->name, cluster->network, cluster->name);
    const char *near = ms_nearest(cluster->network, names, profile->num_networks);
    if (near != NULL)
        ms_hint(cx, "did you mean \"%s\"?", near);
    return MS_EINPUT;
}

void ms_law_add(ms_collective_law *law, ms_algorithm algorithm, double alpha_s,
                double beta_s_per_byte, double ramp)
{
    assert(law->num_algorithms < MS_MAX_LAW_ALGORITHMS);
    int i = law->num_algorithms++;
    law->algorithm[i].most_ramp_s = INFINITY;
    law->algorithm[i].kind = algorithm;
    law->algorithm[i].alpha_s = alpha_s;
    law->algorithm[i].beta_s_per_byte = beta_s_per_byte;
    law->algorithm[i].ramp = ramp;
}

/* Limit of a cost law's ramp (sqrt) term between nodes, in units of alpha: NCCL changes
 * from protocol LL to Simple, whose step over a network takes 14 us where LL takes 2.7
 * (NCCL 2.28.9 src/graph/tuning.cc, ring). */
#define SIMPLE_EXTRA_LATENCIES (14.0 / 2.7 - 1.0)

void ms_law_add_between_nodes(ms_collective_law *law, ms_algorithm algorithm,
                              double alpha_s, double beta_s_per_byte, double ramp)
{
    ms_law_add(law, algorithm, alpha_s, beta_s_per_byte, ramp);
    law->algorithm[law->num_algorithms - 1].most_ramp_s =
        SIMPLE_EXTRA_LATENCIES * alpha_s;
}

/* Bytes per second that each GPU can send out of its domain, over all network levels up
 * to `tier`; a level with o:1 oversubscription gives 1/o of its rate. */
static double nic_rate(const ms_cluster *cluster, const ms_network_profile *network,
                       int tier)
{
    double rate = INFINITY;
    for (int i = 1; i <= tier; i++)
        rate = ms_min(rate, cluster->levels[i].bandwidth_bytes_per_s /
                                cluster->levels[i].oversubscription);
    return rate * network->bandwidth_frac.value;
}

/* Part of the listed link rate that a group inside a domain can use; all on a switch. */
static double usable_rate(const ms_cluster *cluster, const ms_span *span)
{
    const ms_level *level = &cluster->levels[0];
    double rate = level->bandwidth_bytes_per_s, ranks = (double)span->per_domain[0];
    if (level->topology == MS_FULL_MESH)
        return rate * ms_max(ranks - 1.0, 1.0) / ((double)ms_level_gpus(level) - 1.0);
    if (level->topology == MS_TORUS) {
        double links = span->torus.links > 0.0 ? span->torus.links : 1.0;
        return rate * links / (2.0 * (double)level->num_dims);
    }
    return rate;
}

double ms_law_own_step(const ms_law_setting *s)
{
    return s->cluster->levels[0].topology == MS_FULL_MESH ? 1.0 : 0.5;
}

bool ms_law_reduces_in_switch(const ms_law_setting *s)
{
    return !isnan(s->profile->nvls_bytes_per_s.value) &&
           s->per_node >= s->profile->nvls_min_ranks.value;
}

double ms_law_in_switch_rate(const ms_law_setting *s)
{
    return ms_min(s->profile->nvls_bytes_per_s.value, 2.0 * s->link_bytes_per_s);
}

/* Outermost level that a collective crosses. */
static int tier_of(ms_collective collective, const ms_span *span)
{
    bool changes_rails = collective == MS_ALL_TO_ALL || collective == MS_SEND;
    return changes_rails || span->ring_tier == 0 ? span->tier : span->ring_tier;
}

static ms_collective_law make_law(ms_collective collective, const ms_span *span,
                                  const ms_cluster *cluster, const ms_profile *profile,
                                  const double *copies_frac)
{
    ms_collective_law law = {.wire_frac = copies_frac == NULL ? 1.0 : *copies_frac};
    if (span->size <= 1)
        return law;
    ms_law_setting s = {.collective = collective,
                        .span = span,
                        .wire_frac = law.wire_frac,
                        .by_kernels = copies_frac != NULL,
                        .ranks = (double)span->size,
                        .per_node = (double)span->per_domain[0],
                        .narrowest = (double)ms_span_nic_ranks(span),
                        .tier = tier_of(collective, span),
                        .cluster = cluster,
                        .profile = profile,
                        .torus =
                            cluster->levels[0].topology == MS_TORUS ? &span->torus : NULL,
                        .link_bytes_per_s = usable_rate(cluster, span)};
    s.nodes = ceil(s.ranks / s.per_node);
    if (s.tier > 0) {
        s.network = ms_profile_network(profile, cluster->network);
        assert(s.network != NULL); /* checked by ms_network_check */
        s.nic_bytes_per_s = nic_rate(cluster, s.network, s.tier);
    }
    for (int i = MS_ALGORITHM_NONE + 1; i < MS_NUM_ALGORITHMS; i++) {
        const ms_algorithm_row *row = ms_algorithm_row_of((ms_algorithm)i);
        if (row->collectives >> collective & 1u)
            row->add_law(&law, &s);
    }
    if (profile->measured != NULL && cluster->num_levels == 1)
        law.measured = ms_sweep_find(profile->measured, (int)collective, span->size);
    return law;
}

ms_collective_law ms_collective_law_make(ms_collective collective, const ms_span *span,
                                         const ms_cluster *cluster,
                                         const ms_profile *profile)
{
    return make_law(collective, span, cluster, profile, NULL);
}

ms_collective_law ms_token_exchange_law_make(const ms_span *span,
                                             const ms_cluster *cluster,
                                             const ms_profile *profile, double wire_frac)
{
    return make_law(MS_ALL_TO_ALL, span, cluster, profile, &wire_frac);
}

double ms_shared_copies_frac(double places, long top_k)
{
    double copies = (double)top_k;
    return places * (1.0 - pow(1.0 - 1.0 / places, copies)) / copies;
}

static inline double algorithm_s(const ms_collective_law *law, int i, double size_bytes)
{
    double alpha_s = law->algorithm[i].alpha_s;
    double wire_s = law->algorithm[i].beta_s_per_byte * size_bytes;
    double ramp_s = law->algorithm[i].ramp * sqrt(alpha_s * wire_s);
    return alpha_s + wire_s + ms_min(ramp_s, law->algorithm[i].most_ramp_s);
}

static inline double fitted_s(const ms_collective_law *law, double size_bytes)
{
    double best_s = INFINITY;
    for (int i = 0; i < law->num_algorithms; i++)
        best_s = ms_min(best_s, algorithm_s(law, i, size_bytes));
    return best_s;
}

static double measured_s(const ms_collective_law *law, double size_bytes)
{
    double seconds;
    if (ms_sweep_curve_s(law->measured, size_bytes, &seconds))
        return seconds;
    const double *rows = law->measured->rows.values;
    const double *end = size_bytes < rows[0]
                            ? rows
                            : rows + (law->measured->rows.num - 1) * MS_CURVE_COLUMNS;
    return fitted_s(law, size_bytes) * end[1] / fitted_s(law, end[0]);
}

double ms_collective_s(const ms_collective_law *law, double size_bytes)
{
    if (law->num_algorithms == 0 || size_bytes <= 0.0)
        return 0.0;
    if (law->measured != NULL)
        return measured_s(law, size_bytes);
    return fitted_s(law, size_bytes);
}

double ms_collective_by_s(const ms_collective_law *law, ms_algorithm algorithm,
                          double size_bytes)
{
    for (int i = 0; i < law->num_algorithms; i++)
        if (law->algorithm[i].kind == algorithm)
            return algorithm_s(law, i, size_bytes);
    return (double)NAN;
}

static int fastest(const ms_collective_law *law, double size_bytes)
{
    int best = 0;
    for (int i = 1; i < law->num_algorithms; i++)
        if (algorithm_s(law, i, size_bytes) < algorithm_s(law, best, size_bytes))
            best = i;
    return best;
}

ms_algorithm ms_collective_algorithm(const ms_collective_law *law, double size_bytes)
{
    return law->num_algorithms == 0 ? MS_ALGORITHM_NONE
                                    : law->algorithm[fastest(law, size_bytes)].kind;
}

double ms_collective_wire_s(const ms_collective_law *law, double size_bytes)
{
    if (law->num_algorithms == 0 || size_bytes <= 0.0)
        return 0.0;
    double beta_s_per_byte = law->algorithm[fastest(law, size_bytes)].beta_s_per_byte;
    return ms_min(beta_s_per_byte * size_bytes, ms_collective_s(law, size_bytes));
}

double ms_collective_latency_s(const ms_collective_law *law, double size_bytes)
{
    return law->num_algorithms == 0 ? 0.0
                                    : law->algorithm[fastest(law, size_bytes)].alpha_s;
}
