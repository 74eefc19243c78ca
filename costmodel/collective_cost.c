/* Laws of collectives. Inside one domain of the innermost level: a ring whose time is
 *   alpha + beta S + ramp sqrt(alpha beta S),  alpha = a0 + l steps,
 *   beta = (steps + 1/2)/(n W),
 * steps = n-1 (gather, scatter) or 2(n-1) (all-reduce). The half step acts like a local
 * copy and explains groups of two; the root is the ramp between latency and bandwidth.
 * Form chosen, and a0, l and W fitted, on the nccl-tests sweeps of
 * ai-dynamo/aiconfigurator systems/data: A100, H100, B200, 2 to 8 GPUs. Across domains
 * the same ring runs over links and NICs; all-reduce also as a tree. On a full mesh n
 * GPUs of a domain of D use n - 1 of their D - 1 wires; on a torus the wires of the dims
 * that the group spans, both ways round (topo/torus.h). */
#include "costmodel/collective_cost.h"

#include "base/number.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const char *const ms_collective_names[] = {"all-gather", "reduce-scatter", "all-reduce",
                                           "all-to-all", "send",           NULL};

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

/* What a law is made from. Ranks are doubles because all arithmetic with them is. */
typedef struct setting {
    ms_collective collective;
    double ranks;     /* n */
    double per_node;  /* p: ranks that share an innermost domain */
    double narrowest; /* where they are fewest */
    double nodes;     /* innermost domains, rounded up */
    int tier;
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_network_profile *network; /* NULL inside one domain */
    const ms_torus_span *torus;        /* NULL: the innermost level is no torus */
    /* listed rate at which a rank sends to its ranks of the innermost level */
    double link_bytes_per_s;
    /* per GPU over the slowest level the group crosses; 0 inside one domain */
    double nic_bytes_per_s;
    double wire_frac; /* of an all-to-all's copies between domains */
    bool by_kernels;  /* an all-to-all of tokens, by kernels that write to other ranks */
} setting;

static void add(ms_collective_law *law, const char *name, double alpha_s,
                double beta_s_per_byte, double ramp)
{
    int i = law->num_algorithms++;
    law->algorithm[i].most_ramp_s = INFINITY;
    law->algorithm[i].name = name;
    law->algorithm[i].alpha_s = alpha_s;
    law->algorithm[i].beta_s_per_byte = beta_s_per_byte;
    law->algorithm[i].ramp = ramp;
}

/* Between nodes the ramp ends where NCCL has left LL for Simple, whose step over a
 * network takes 14 us where LL takes 2.7 (NCCL 2.28.9 src/graph/tuning.cc, ring): latency
 * grows by this multiple of itself at most. */
#define SIMPLE_EXTRA_LATENCIES (14.0 / 2.7 - 1.0)

static void add_between_nodes(ms_collective_law *law, const char *name, double alpha_s,
                              double beta_s_per_byte, double ramp)
{
    add(law, name, alpha_s, beta_s_per_byte, ramp);
    law->algorithm[law->num_algorithms - 1].most_ramp_s =
        SIMPLE_EXTRA_LATENCIES * alpha_s;
}

/* Steps of a ring over n ranks: all-reduce is a reduce-scatter followed by an
 * all-gather. */
static double ring_steps(ms_collective collective, double ranks)
{
    return (collective == MS_ALL_REDUCE ? 2.0 : 1.0) * (ranks - 1.0);
}

/* What one GPU can send out of its domain, over all levels up to the tier. All GPUs of a
 * domain may send at once, so a level that is o:1 oversubscribed gives each of them 1/o
 * of its rate. */
static double nic_rate(const ms_cluster *cluster, const ms_network_profile *network,
                       int tier)
{
    double rate = INFINITY;
    for (int i = 1; i <= tier; i++)
        rate = ms_min(rate, cluster->levels[i].bandwidth_bytes_per_s /
                                cluster->levels[i].oversubscription);
    return rate * network->bandwidth_frac.value;
}

/* Latency that ring steps over levels above the first network level add: each domain
 * boundary is one hop. */
static double upper_level_hops_s(const setting *s, const ms_span *span)
{
    double extra_s = 0.0;
    for (int i = 2; i <= s->tier; i++) {
        double domains = ceil(s->ranks / (double)span->per_domain[i - 1]);
        double hop_s =
            s->cluster->levels[i].latency_s - s->cluster->levels[i - 1].latency_s;
        extra_s += (domains - 1.0) * ms_max(hop_s, 0.0);
    }
    return extra_s;
}

/* Of the listed rate of a GPU, what the ranks of one group in a domain can use: all of it
 * through a switch. */
static double usable_rate(const ms_cluster *cluster, const ms_span *span)
{
    const ms_level *level = &cluster->levels[0];
    double rate = level->bandwidth_bytes_per_s, ranks = (double)span->per_domain[0];
    if (level->topology == MS_FULL_MESH)
        return rate * ms_max(ranks - 1.0, 1.0) / ((double)level->gpus_per_domain - 1.0);
    if (level->topology == MS_TORUS) {
        double links = span->torus.links > 0.0 ? span->torus.links : 1.0;
        return rate * links / (2.0 * (double)level->num_dims);
    }
    return rate;
}

/* Rings on a full mesh: n - 1 rings that share no wire. There is no half step: its wires
 * are slow beside a local copy. W and the missing half step agree with both published
 * rates of MI300X, 47.7 GB/s for 2 GPUs and 312.9 for 8 (docs/formulas). */
static void add_mesh_ring(ms_collective_law *law, const setting *s)
{
    const ms_profile *profile = s->profile;
    double steps = ring_steps(s->collective, s->ranks);
    double alpha_s = profile->link_base_s.value + profile->link_step_s.value * steps;
    double rate = s->link_bytes_per_s * profile->link_frac.value;
    add(law, "ring", alpha_s, steps / (s->ranks * rate), profile->ramp.value);
}

/* Rings along all dims of a torus that the group spans, both ways round: each moves its
 * part of the bytes, pipelined in rotated orders of the dims. Source: jax-ml/scaling-book
 * sharding.md, T = S / (W dims) for many chips. A line instead of a ring has one way:
 * twice the time. */
static void add_torus_ring(ms_collective_law *law, const setting *s)
{
    const ms_profile *profile = s->profile;
    double rounds = s->collective == MS_ALL_REDUCE ? 2.0 : 1.0;
    double alpha_s =
        profile->link_base_s.value + profile->link_step_s.value * rounds * s->torus->hops;
    double rate = s->link_bytes_per_s * profile->link_frac.value;
    add(law, "ring", alpha_s, ring_steps(s->collective, s->ranks) / (s->ranks * rate),
        profile->ramp.value);
}

/* Each to each over a torus: the wires of the longest dim carry most. On a ring of n this
 * is 1/4 of an all-gather of what all ranks hold (scaling-book sharding.md): each message
 * travels n/4 hops on average, not the whole ring. */
static void add_torus_all_to_all(ms_collective_law *law, const setting *s)
{
    const ms_profile *profile = s->profile;
    double alpha_s = profile->all_to_all_base_s.value +
                     profile->all_to_all_step_s.value * log2(s->ranks) +
                     profile->link_step_s.value * s->torus->hops;
    double wire_rate = s->link_bytes_per_s / s->torus->links;
    add(law, "direct", alpha_s,
        s->torus->cut / (wire_rate * profile->all_to_all_frac.value),
        profile->ramp.value);
}

static void add_link_ring(ms_collective_law *law, const setting *s)
{
    double steps = ring_steps(s->collective, s->ranks);
    double alpha_s =
        s->profile->link_base_s.value + s->profile->link_step_s.value * steps;
    double rate = s->link_bytes_per_s * s->profile->link_frac.value;
    add(law, "ring", alpha_s, (steps + 0.5) / (s->ranks * rate), s->profile->ramp.value);
}

/* In-switch reduction (NVLink SHARP): latency and bus bandwidth are measured, at 8 GPUs
 * unless the profile says otherwise. It cannot carry more than twice the link: each rank
 * sends and receives once. */
static void add_nvls(ms_collective_law *law, const setting *s)
{
    double min_ranks = s->profile->nvls_min_ranks.value;
    if (s->collective != MS_ALL_REDUCE || isnan(s->profile->nvls_bytes_per_s.value) ||
        !(s->ranks >= min_ranks))
        return;
    double rate = ms_min(s->profile->nvls_bytes_per_s.value, 2.0 * s->link_bytes_per_s);
    add(law, "nvls", s->profile->nvls_base_s.value,
        2.0 * (s->ranks - 1.0) / (s->ranks * rate), 0.0);
}

/* What a rank keeps counts half through a switch, and not at all beside the slow wires
 * of a mesh. */
static double own_step(const setting *s)
{
    return s->cluster->levels[0].topology == MS_FULL_MESH ? 1.0 : 0.5;
}

/* Ring over several nodes: consecutive ranks of a node are neighbours, so nodes - 1 of n
 * - 1 steps cross. A group with p ranks in a node leaves it over p NICs at once (rail
 * wiring), as fast as the slower of these and the links. A step takes at least
 * rank_step_s on networks where chunks, not wires, set the pace. */
static void add_network_ring(ms_collective_law *law, const setting *s,
                             const ms_span *span)
{
    const ms_network_profile *network = s->network;
    double steps = ring_steps(s->collective, s->ranks);
    double crossing = ring_steps(s->collective, s->nodes);
    double rounds = s->collective == MS_ALL_REDUCE ? 2.0 : 1.0;
    double alpha_s =
        network->base_s.value +
        crossing * ms_max(network->step_s.value, network->rank_step_s.value) +
        (steps - crossing) *
            ms_max(s->profile->link_step_s.value, network->rank_step_s.value) +
        rounds * upper_level_hops_s(s, span);
    double link_rate = s->link_bytes_per_s * s->profile->link_frac.value;
    double wire = steps / (s->ranks * s->narrowest * s->nic_bytes_per_s);
    double link =
        s->per_node > 1.0 ? (steps + 1.0 - own_step(s)) / (s->ranks * link_rate) : 0.0;
    add_between_nodes(law, "ring", alpha_s, ms_max(wire, link), network->ramp.value);
}

/* Whether the ranks of a node are reduced in its switch. */
static bool reduces_in_switch(const setting *s)
{
    return !isnan(s->profile->nvls_bytes_per_s.value) &&
           s->per_node >= s->profile->nvls_min_ranks.value;
}

/* Seconds a byte of an all-reduce inside the nodes of a tree: in the switch, or up and
 * down a chain. */
static double tree_inside_s(const setting *s)
{
    double rate = s->link_bytes_per_s * s->profile->link_frac.value;
    if (reduces_in_switch(s))
        rate = ms_min(s->profile->nvls_bytes_per_s.value, 2.0 * s->link_bytes_per_s);
    return s->per_node > 1.0 ? 2.0 * (s->ranks - 1.0) / (s->ranks * rate) : 0.0;
}

/* Double binary tree over nodes, chains or in-switch reduction inside (NCCL): up and down
 * log2(nodes) levels. A node sends 2 S, up once and down twice in one tree, up once in
 * the other, over its p NICs at tree_frac of their rate; levels that store and forward
 * add up. Two nodes exchange their sums once each way, S; then the reduction inside the
 * node binds: published two-node H100 all-reduces (470-487 GB/s bus) exceed what a ring
 * can reach. Nodes with chains do not gain from that, since NCCL takes its ring there:
 * 190 GB/s published for two nodes of A100. */
static void add_network_tree(ms_collective_law *law, const setting *s)
{
    const ms_network_profile *network = s->network;
    double levels = ceil(log2(s->nodes));
    double alpha_s = network->base_s.value + 2.0 * levels * network->step_s.value +
                     2.0 * (s->per_node - 1.0) * s->profile->link_step_s.value;
    bool pair = s->nodes <= 2.0 && (s->per_node <= 1.0 || reduces_in_switch(s));
    double share = pair ? 2.0 : network->tree_frac.value;
    double serial = 1.0 + network->tree_serial.value * (levels - 1.0);
    double out_s = 2.0 * serial / (s->narrowest * s->nic_bytes_per_s * share);
    add_between_nodes(law, "tree", alpha_s, ms_max(out_s, tree_inside_s(s)),
                      network->tree_ramp.value);
}

/* Kernels that write to their peers reach what rings do, NCCL's sends less. */
static double exchange_rate(const setting *s)
{
    const ms_profile *profile = s->profile;
    return s->link_bytes_per_s * (s->by_kernels ? ms_max(profile->link_frac.value,
                                                         profile->all_to_all_frac.value)
                                                : profile->all_to_all_frac.value);
}

/* All-to-all inside a domain: as the ring's form with n - 1 direct exchanges, latency
 * grows with log2 n. */
static void add_link_all_to_all(ms_collective_law *law, const setting *s)
{
    const ms_profile *profile = s->profile;
    double alpha_s = profile->all_to_all_base_s.value +
                     profile->all_to_all_step_s.value * log2(s->ranks);
    add(law, "direct", alpha_s, (s->ranks - own_step(s)) / (s->ranks * exchange_rate(s)),
        profile->ramp.value);
}

/* Across nodes (n - p)/n of a rank's bytes leave over its own NIC, while (p - 1)/n travel
 * over the links: the longer of the two. Rates of NICs cannot be pooled here
 * (NVIDIA/nccl-tests issue 130). Latency: messages to different nodes overlap, so one
 * step is paid per doubling of the nodes. Assumed: no multi-node sweep is public. */
static void add_network_all_to_all(ms_collective_law *law, const setting *s)
{
    const ms_profile *profile = s->profile;
    double alpha_s = s->network->base_s.value +
                     profile->all_to_all_step_s.value * log2(s->ranks) +
                     s->network->step_s.value * log2(s->nodes);
    double link_rate = exchange_rate(s);
    double wire =
        s->wire_frac * (s->ranks - s->narrowest) / (s->ranks * s->nic_bytes_per_s);
    double link = (s->per_node - own_step(s)) / (s->ranks * link_rate);
    if (s->by_kernels) /* what arrives is handed on to the ranks of its experts */
        link = (s->per_node - own_step(s)) / (s->per_node * link_rate);
    if (s->torus != NULL && s->per_node > 1.0)
        link = s->torus->cut * s->per_node * s->torus->links / (s->ranks * link_rate);
    add_between_nodes(law, "direct", alpha_s, ms_max(wire, link), s->network->ramp.value);
}

/* The rate of one rank to the next in a domain: on a mesh one wire, on a torus a wire
 * that all groups whose hops pass it share. */
static double neighbour_rate(const setting *s)
{
    const ms_level *level = &s->cluster->levels[0];
    double rate = level->bandwidth_bytes_per_s;
    if (level->topology == MS_FULL_MESH)
        return rate / ((double)level->gpus_per_domain - 1.0);
    if (level->topology == MS_TORUS)
        return rate / (2.0 * (double)level->num_dims * (double)s->torus->step);
    return rate;
}

/* A send to the neighbour in the group over the tier that holds the group: the slowest
 * hop of a pipeline. */
static void add_send(ms_collective_law *law, const setting *s)
{
    double rate = s->tier > 0 ? s->nic_bytes_per_s
                              : neighbour_rate(s) * s->profile->link_frac.value;
    if (s->tier > 0 && s->network->send_frac.value > 0.0)
        rate *= s->network->send_frac.value / s->network->bandwidth_frac.value;
    double alpha_s = s->profile->p2p_base_s.value + s->cluster->levels[s->tier].latency_s;
    add(law, "send", alpha_s, 1.0 / rate, 0.0);
}

static void add_inside(ms_collective_law *law, const setting *s)
{
    int topology = s->cluster->levels[0].topology;
    if (topology == MS_TORUS) {
        if (s->collective == MS_ALL_TO_ALL)
            add_torus_all_to_all(law, s);
        else
            add_torus_ring(law, s);
        return;
    }
    if (topology == MS_FULL_MESH && s->collective != MS_ALL_TO_ALL) {
        add_mesh_ring(law, s);
        return;
    }
    if (s->collective == MS_ALL_TO_ALL) {
        add_link_all_to_all(law, s);
        return;
    }
    add_link_ring(law, s);
    add_nvls(law, s);
}

static void add_across(ms_collective_law *law, const setting *s, const ms_span *span)
{
    assert(s->network != NULL);
    if (s->collective == MS_ALL_TO_ALL) {
        add_network_all_to_all(law, s);
        return;
    }
    add_network_ring(law, s, span);
    if (s->collective == MS_ALL_REDUCE)
        add_network_tree(law, s);
}

static ms_collective_law make_law(ms_collective collective, const ms_span *span,
                                  const ms_cluster *cluster, const ms_profile *profile,
                                  const double *copies_frac)
{
    ms_collective_law law = {.wire_frac = copies_frac == NULL ? 1.0 : *copies_frac};
    if (span->size <= 1)
        return law;
    setting s = {.collective = collective,
                 .wire_frac = law.wire_frac,
                 .by_kernels = copies_frac != NULL,
                 .ranks = (double)span->size,
                 .per_node = (double)span->per_domain[0],
                 .narrowest = (double)(span->narrowest > 0 ? span->narrowest
                                                           : span->per_domain[0]),
                 .tier = span->tier,
                 .cluster = cluster,
                 .profile = profile,
                 .torus = cluster->levels[0].topology == MS_TORUS ? &span->torus : NULL,
                 .link_bytes_per_s = usable_rate(cluster, span)};
    s.nodes = ceil(s.ranks / s.per_node);
    if (span->tier > 0) {
        s.network = ms_profile_network(profile, cluster->network);
        assert(s.network != NULL); /* the pricer has checked it */
        s.nic_bytes_per_s = nic_rate(cluster, s.network, span->tier);
    }
    if (collective == MS_SEND)
        add_send(&law, &s);
    else if (span->tier == 0)
        add_inside(&law, &s);
    else
        add_across(&law, &s, span);
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

double ms_collective_by_s(const ms_collective_law *law, const char *algorithm,
                          double size_bytes)
{
    for (int i = 0; i < law->num_algorithms; i++)
        if (strcmp(law->algorithm[i].name, algorithm) == 0)
            return algorithm_s(law, i, size_bytes);
    return (double)NAN;
}

const char *ms_collective_algorithm(const ms_collective_law *law, double size_bytes)
{
    int best = 0;
    if (law->num_algorithms == 0)
        return "";
    for (int i = 1; i < law->num_algorithms; i++)
        if (algorithm_s(law, i, size_bytes) < algorithm_s(law, best, size_bytes))
            best = i;
    return law->algorithm[best].name;
}

double ms_collective_wire_bytes(ms_collective collective, long group_size,
                                double size_bytes)
{
    if (group_size <= 1)
        return 0.0;
    if (collective == MS_SEND)
        return size_bytes;
    double share = (double)(group_size - 1) / (double)group_size;
    return (collective == MS_ALL_REDUCE ? 2.0 : 1.0) * share * size_bytes;
}
