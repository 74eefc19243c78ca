#include "sim/step/links.h"

#include "base/number.h"
#include "topo/torus.h"

#include <math.h>
#include <string.h>

/* ---- spans ---- */

/* Mesh axes of a communication group; `sparse`: axes of the expert parameters' mesh. */
typedef struct group_axes {
    bool sparse;
    const char *axes[MS_NUM_PLAN_AXES + 1];
} group_axes;

static const group_axes groups[MS_NUM_SPANS] = {
    [MS_BILL_TP] = {false, {"tp"}},
    [MS_BILL_CP] = {false, {"cp"}},
    [MS_BILL_EP] = {true, {"ep"}},
    [MS_NUM_BILL_AXES + MS_SYNC_FSDP] = {false, {"dp_shard", "cp"}},
    [MS_NUM_BILL_AXES + MS_SYNC_EXPERT_FSDP] = {true, {"efsdp"}},
    [MS_NUM_BILL_AXES + MS_SYNC_REPLICATE] = {false, {"dp_replicate"}},
    [MS_NUM_BILL_AXES + MS_SYNC_ALL] = {false, {"dp_replicate", "dp_shard", "cp"}},
    [MS_NUM_BILL_AXES + MS_SYNC_EXPERT_ALL] = {true, {"dp_replicate", "efsdp"}},
    [MS_NUM_BILL_AXES + MS_NUM_SYNC_GROUPS] = {false, {"pp"}},
    [MS_NUM_BILL_AXES + MS_NUM_SYNC_GROUPS +
        1] = {false, {"pp", "dp_replicate", "dp_shard", "cp", "tp"}},
};

/* Groups over which expert parameters are data-parallel if each rank has whole experts.
 * They include tp, since the ranks of a tp group then have different tokens. */
static const group_axes whole_experts[MS_NUM_SPANS] = {
    [MS_NUM_BILL_AXES + MS_SYNC_EXPERT_FSDP] = {false, {"dp_shard", "cp", "tp"}},
    [MS_NUM_BILL_AXES +
        MS_SYNC_EXPERT_ALL] = {false, {"dp_replicate", "dp_shard", "cp", "tp"}},
};

static long common_divisor(long a, long b)
{
    while (b != 0) {
        long rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The `size` innermost ranks of a group, whose size that divides. */
static ms_group inner_group(const ms_group *of, long size)
{
    ms_group out = *of;
    long left = size;
    out.size = size;
    for (int i = of->num_modes - 1; i >= 0; i--) {
        out.modes[i].size = common_divisor(of->modes[i].size, left);
        left /= out.modes[i].size;
    }
    int num = 0;
    for (int i = 0; i < of->num_modes; i++)
        if (out.modes[i].size > 1)
            out.modes[num++] = out.modes[i];
    out.num_modes = num;
    return out;
}

/* Sets the groups over which ZeRO-3 shards parameters after forward. Experts have as many
 * ranks of such a group as share them, at least one. */
static void set_secondary_groups(const ms_plan *plan, ms_plan_groups *out)
{
    long secondary = ms_plan_secondary_shards(plan);
    const ms_group *dense = &out->group[MS_NUM_BILL_AXES + MS_SYNC_FSDP];
    const ms_group *expert = &out->group[MS_NUM_BILL_AXES + MS_SYNC_EXPERT_FSDP];
    long inner = secondary > 0 ? secondary * expert->size / dense->size : 1;
    out->group[MS_NUM_BILL_AXES + MS_SYNC_SECONDARY] =
        inner_group(dense, secondary > 0 ? secondary : 1);
    out->group[MS_NUM_BILL_AXES + MS_SYNC_EXPERT_SECONDARY] =
        inner_group(expert, inner > 1 ? common_divisor(expert->size, inner) : 1);
}

ms_plan_groups ms_plan_groups_of(const ms_plan *plan)
{
    bool has_experts = plan->ep * plan->etp > 1;
    ms_plan_groups out = {.mesh = ms_plan_mesh(plan)};
    ms_mesh sparse = has_experts ? ms_plan_expert_mesh(plan) : out.mesh;
    for (int i = 0; i < MS_NUM_SPANS; i++) {
        bool whole = !has_experts && whole_experts[i].axes[0] != NULL;
        const group_axes *group = whole ? &whole_experts[i] : &groups[i];
        const ms_mesh *mesh = group->sparse ? &sparse : &out.mesh;
        int axes[MS_MAX_AXES], num_axes = 0;
        for (const char *const *name = group->axes; *name != NULL; name++) {
            int axis = ms_mesh_find(mesh, *name);
            if (axis >= 0)
                axes[num_axes++] = axis;
        }
        out.group[i] = ms_mesh_group(mesh, axes, num_axes);
    }
    set_secondary_groups(plan, &out);
    return out;
}

ms_torus ms_plan_torus(const ms_plan *plan, const ms_cluster *cluster)
{
    const ms_level *level = &cluster->levels[0];
    ms_mesh dense = ms_plan_mesh(plan), sparse = dense;
    if (plan->ep * plan->etp > 1)
        sparse = ms_plan_expert_mesh(plan);
    long cuts[MS_MAX_TORUS_CUTS], domain = level->gpus_per_domain;
    int num_cuts = ms_torus_add_cuts(&sparse, cuts, ms_torus_add_cuts(&dense, cuts, 0));
    ms_torus torus =
        ms_torus_slice(level, dense.num_ranks < domain ? dense.num_ranks : domain);
    ms_torus_arrange(&torus, cuts, num_cuts);
    return torus;
}

void ms_links_spans(const ms_plan *plan, const ms_cluster *cluster,
                    ms_span spans[MS_NUM_SPANS])
{
    ms_plan_groups all = ms_plan_groups_of(plan);
    bool is_torus = cluster->levels[0].topology == MS_TORUS;
    ms_torus torus;
    if (is_torus)
        torus = ms_plan_torus(plan, cluster);
    for (int i = 0; i < MS_NUM_SPANS; i++)
        spans[i] = ms_group_span_on(&all.group[i], all.mesh.num_ranks, cluster,
                                    is_torus ? &torus : NULL);
}

/* ---- laws ---- */

/* Whether a block can have the collective on the axis: sends only in ring attention (cp),
 * and over ep only all-to-alls, or what replaces them (make_gather_laws). */
static bool is_in_bills(int axis, int collective)
{
    return axis == MS_BILL_EP ? collective == MS_ALL_TO_ALL
                              : collective != MS_SEND || axis == MS_BILL_CP;
}

static void make_bill_laws(ms_links *links, const ms_cluster *cluster,
                           const ms_profile *profile)
{
    for (int axis = 0; axis < MS_NUM_BILL_AXES; axis++) {
        const ms_span *span = &links->span[axis];
        for (int c = 0; c < MS_NUM_COLLECTIVES && span->size > 1; c++)
            if (is_in_bills(axis, c))
                links->law[axis][c] =
                    ms_collective_law_make((ms_collective)c, span, cluster, profile);
    }
}

static ms_links laws_of(const ms_span spans[MS_NUM_SPANS], const ms_cluster *cluster,
                        const ms_profile *profile, bool has_secondary)
{
    ms_links links = {0};
    memcpy(links.span, spans, sizeof links.span);
    memcpy(links.sync_span, spans + MS_NUM_BILL_AXES, sizeof links.sync_span);
    links.has_secondary = has_secondary;
    links.pipeline_span = spans[MS_NUM_SPANS - 2];
    links.world_span = spans[MS_NUM_SPANS - 1];
    make_bill_laws(&links, cluster, profile);
    for (int i = 0; i < MS_NUM_SYNC_GROUPS; i++) {
        const ms_span *span = &links.sync_span[i];
        if (span->size <= 1)
            continue;
        links.gather[i] = ms_collective_law_make(MS_ALL_GATHER, span, cluster, profile);
        links.reduce[i] =
            ms_collective_law_make(MS_REDUCE_SCATTER, span, cluster, profile);
        links.all_reduce[i] =
            ms_collective_law_make(MS_ALL_REDUCE, span, cluster, profile);
    }
    if (links.pipeline_span.size > 1)
        links.send =
            ms_collective_law_make(MS_SEND, &links.pipeline_span, cluster, profile);
    if (links.world_span.size > 1)
        links.world =
            ms_collective_law_make(MS_ALL_REDUCE, &links.world_span, cluster, profile);
    return links;
}

/* Whether a token exchange sends a token only once to each rank and network domain,
 * however many of its experts are there. */
static bool shares_copies(const ms_workload *workload, ms_collective collective, int axis)
{
    return axis == MS_BILL_EP && collective == MS_ALL_TO_ALL &&
           workload->stack->shares_token_copies;
}

/* Share of a token's copies for other ranks that goes to other network domains; 1 if the
 * group is inside one domain. */
static double crossing_frac(const ms_span *span, long top_k)
{
    double ranks = (double)span->size;
    double domains = ceil(ranks / (double)span->per_domain[0]);
    return span->tier == 0 ? 1.0
                           : ms_shared_copies_frac(domains, top_k) /
                                 ms_shared_copies_frac(ranks, top_k);
}

static ms_collective_law exchange_law(const ms_workload *workload, const ms_span *span)
{
    double frac = crossing_frac(span, workload->model->moe.top_k);
    return ms_token_exchange_law_make(span, workload->cluster, workload->profile, frac);
}

/* Laws of token exchanges in stacks that gather all tokens (gathers_tokens). */
static void make_gather_laws(const ms_workload *workload, ms_links *links)
{
    static const ms_collective both[] = {MS_ALL_GATHER, MS_REDUCE_SCATTER};
    const ms_span *experts = &links->span[MS_BILL_EP];
    for (int i = 0; i < 2 && experts->size > 1 && workload->stack->gathers_tokens; i++)
        links->law[MS_BILL_EP][both[i]] = ms_collective_law_make(
            both[i], experts, workload->cluster, workload->profile);
}

ms_links ms_links_make(const ms_workload *workload, const ms_plan *plan)
{
    ms_span spans[MS_NUM_SPANS];
    ms_links_spans(plan, workload->cluster, spans);
    ms_links links = laws_of(spans, workload->cluster, workload->profile,
                             ms_plan_secondary_shards(plan) > 0);
    const ms_span *experts = &links.span[MS_BILL_EP];
    if (experts->size > 1 && workload->stack->shares_token_copies)
        links.law[MS_BILL_EP][MS_ALL_TO_ALL] = exchange_law(workload, experts);
    make_gather_laws(workload, &links);
    return links;
}

/* A cost formula that no placement of the group beats: the least latency, time per byte
 * and ramp over all algorithms and numbers of ranks per network domain. */
static ms_collective_law least_law(const ms_workload *workload, int axis,
                                   ms_collective collective, const ms_span *ideal)
{
    const ms_cluster *cluster = workload->cluster;
    ms_collective_law least = {.num_algorithms = 1};
    least.algorithm[0].alpha_s = least.algorithm[0].beta_s_per_byte =
        least.algorithm[0].ramp = least.algorithm[0].most_ramp_s = INFINITY;
    for (long per_domain = 1; per_domain <= ideal->per_domain[0]; per_domain++) {
        ms_span span = *ideal;
        span.per_domain[0] = span.narrowest = per_domain;
        if (per_domain < ideal->size && span.tier == 0)
            span.tier = cluster->num_levels > 1;
        ms_collective_law law =
            shares_copies(workload, collective, axis)
                ? exchange_law(workload, &span)
                : ms_collective_law_make(collective, &span, cluster, workload->profile);
        if (law.measured != NULL)
            return law; /* a measured cost formula: holds for every placement */
        for (int i = 0; i < law.num_algorithms; i++) {
            least.algorithm[0].alpha_s =
                ms_min(least.algorithm[0].alpha_s, law.algorithm[i].alpha_s);
            least.algorithm[0].beta_s_per_byte = ms_min(
                least.algorithm[0].beta_s_per_byte, law.algorithm[i].beta_s_per_byte);
            least.algorithm[0].ramp =
                ms_min(least.algorithm[0].ramp, law.algorithm[i].ramp);
            least.algorithm[0].most_ramp_s =
                ms_min(least.algorithm[0].most_ramp_s, law.algorithm[i].most_ramp_s);
        }
    }
    return least;
}

/* Lowers costs of all-reduces to those of their best placement on the cluster. */
static void relax_all_reduces(const ms_workload *workload, ms_links *links)
{
    for (int axis = 0; axis < MS_BILL_EP; axis++)
        if (links->span[axis].size > 1)
            links->law[axis][MS_ALL_REDUCE] =
                least_law(workload, axis, MS_ALL_REDUCE, &links->span[axis]);
    for (int i = 0; i < MS_NUM_SYNC_GROUPS; i++)
        if (links->sync_span[i].size > 1)
            links->all_reduce[i] =
                least_law(workload, -1, MS_ALL_REDUCE, &links->sync_span[i]);
}

/* Whether a group may be faster in two innermost network domains than in one: in a full
 * mesh, where few ranks use few links, or where the NICs of half a domain are about as
 * fast as its links (NVL72). */
static bool may_gain_outside(const ms_cluster *cluster)
{
    const ms_level *inner = &cluster->levels[0];
    if (inner->topology == MS_FULL_MESH)
        return true;
    double half = 0.5 * (double)inner->gpus_per_domain;
    return cluster->num_levels > 1 && half * cluster->levels[1].bandwidth_bytes_per_s >
                                          0.5 * inner->bandwidth_bytes_per_s;
}

static void relax_rings(const ms_workload *workload, ms_links *links)
{
    for (int axis = 0; axis < MS_NUM_BILL_AXES; axis++) {
        for (int c = 0; c < MS_NUM_COLLECTIVES; c++)
            if (links->law[axis][c].num_algorithms > 0)
                links->law[axis][c] =
                    least_law(workload, axis, (ms_collective)c, &links->span[axis]);
    }
    for (int i = 0; i < MS_NUM_SYNC_GROUPS; i++) {
        if (links->sync_span[i].size <= 1)
            continue;
        links->gather[i] = least_law(workload, -1, MS_ALL_GATHER, &links->sync_span[i]);
        links->reduce[i] =
            least_law(workload, -1, MS_REDUCE_SCATTER, &links->sync_span[i]);
    }
    if (links->pipeline_span.size > 1)
        links->send = least_law(workload, -1, MS_SEND, &links->pipeline_span);
}

ms_links ms_links_ideal(const ms_workload *workload, const ms_plan *plan)
{
    const ms_cluster *cluster = workload->cluster;
    ms_span spans[MS_NUM_SPANS];
    ms_links_spans(plan, cluster, spans);
    for (int i = 0; i < MS_NUM_SPANS; i++) {
        ms_group alone = {
            .size = spans[i].size, .num_modes = 1, .modes = {{spans[i].size, 1}}};
        spans[i] = ms_group_span(&alone, spans[i].size, cluster);
        /* other placements may divide the group evenly, and keep it on its rails */
        spans[i].narrowest = spans[i].per_domain[0];
        spans[i].ring_tier = 0;
        if (cluster->levels[0].topology == MS_TORUS && spans[i].size > 1)
            spans[i].torus = ms_torus_span_least(&cluster->levels[0], spans[i].size);
    }
    ms_links links =
        laws_of(spans, cluster, workload->profile, ms_plan_secondary_shards(plan) > 0);
    links.alone = true;
    relax_all_reduces(workload, &links);
    const ms_span *experts = &links.span[MS_BILL_EP];
    if (experts->size > 1 && workload->stack->shares_token_copies)
        links.law[MS_BILL_EP][MS_ALL_TO_ALL] =
            least_law(workload, MS_BILL_EP, MS_ALL_TO_ALL, experts);
    make_gather_laws(workload, &links);
    if (may_gain_outside(cluster))
        relax_rings(workload, &links);
    return links;
}
