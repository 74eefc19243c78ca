#include "costmodel/collective_price.h"

#include <math.h>

long ms_axis_set_ranks(const ms_mesh *mesh, ms_axis_set axes)
{
    long ranks = 1;
    for (int i = 0; i < mesh->num_axes; i++)
        if (axes >> i & 1)
            ranks *= mesh->axes[i].size;
    return ranks;
}

ms_group ms_axis_set_group(const ms_mesh *mesh, ms_axis_set axes)
{
    int list[MS_MAX_AXES], n = 0;
    for (int i = 0; i < mesh->num_axes; i++)
        if (axes >> i & 1)
            list[n++] = i;
    return ms_mesh_group(mesh, list, n);
}

const char *ms_axis_set_tier(const ms_mesh *mesh, const ms_cluster *cluster,
                             ms_axis_set axes)
{
    ms_group group = ms_axis_set_group(mesh, axes);
    ms_span span = ms_group_span(&group, mesh->num_ranks, cluster);
    return cluster->levels[span.tier].name;
}

/* ---- a cluster ---- */

/* Laws of one set of axes. */
typedef struct set_laws {
    bool is_known;
    ms_collective_law of[MS_NUM_COLLECTIVES];
} set_laws;

typedef struct cluster_prices {
    const ms_mesh *mesh;
    const ms_cluster *cluster;
    const ms_profile *profile;
    set_laws *
        sets; /* by set: filled when first asked for, allocated at once so that the arena may be rewound in between */
} cluster_prices;

static void resolve(const cluster_prices *prices, ms_axis_set axes)
{
    ms_group group = ms_axis_set_group(prices->mesh, axes);
    ms_span span = ms_group_span(&group, prices->mesh->num_ranks, prices->cluster);
    for (int i = 0; i < MS_NUM_COLLECTIVES; i++)
        prices->sets[axes].of[i] = ms_collective_law_make(
            (ms_collective)i, &span, prices->cluster, prices->profile);
    prices->sets[axes].is_known = true;
}

static double cluster_seconds(void *data, ms_collective collective, ms_axis_set axes,
                              double size_bytes)
{
    const cluster_prices *prices = data;
    if (!prices->sets[axes].is_known)
        resolve(prices, axes);
    return ms_collective_s(&prices->sets[axes].of[collective], size_bytes);
}

ms_status ms_collective_prices_make(ms_ctx *cx, const ms_mesh *mesh,
                                    const ms_cluster *cluster, const ms_profile *profile,
                                    ms_collective_prices *out)
{
    MS_TRY(ms_network_check(cx, cluster, profile));
    if (cluster->max_gpus > 0 && mesh->num_ranks > cluster->max_gpus)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "a mesh of %ld ranks on cluster \"%s\", which has %ld GPUs",
                       mesh->num_ranks, cluster->name, cluster->max_gpus);
    cluster_prices *prices = MS_NEW(cx->arena, cluster_prices);
    prices->mesh = mesh;
    prices->cluster = cluster;
    prices->profile = profile;
    prices->sets = MS_NEW_ARRAY(cx->arena, 1 << mesh->num_axes, set_laws);
    *out = (ms_collective_prices){cluster_seconds, prices};
    return MS_OK;
}

/* ---- PyTorch ---- */

const ms_pytorch_constants ms_pytorch_defaults = {.gibibytes_per_s = 87.7,
                                                  .inter_host_frac = 0.22,
                                                  .base_us = 6.6,
                                                  .intra_hop_us = 0.6,
                                                  .inter_hop_us = 2.7,
                                                  .all_to_all_penalty_us = 1.0};

typedef struct pytorch_prices {
    const ms_mesh *mesh;
    const ms_pytorch_constants *constants;
    ms_axis_set between_hosts;
} pytorch_prices;

static double pytorch_seconds(void *data, ms_collective collective, ms_axis_set axes,
                              double size_bytes)
{
    const pytorch_prices *prices = data;
    const ms_pytorch_constants *c = prices->constants;
    double ranks = (double)ms_axis_set_ranks(prices->mesh, axes);
    if (collective == MS_SEND)
        return INFINITY;
    if (ranks <= 1.0)
        return 0.0;
    bool inter = (axes & prices->between_hosts) != 0;
    double rate = c->gibibytes_per_s * (inter ? c->inter_host_frac : 1.0);
    double hops = (collective == MS_ALL_REDUCE ? 2.0 : 1.0) * (ranks - 1.0);
    double gibibytes = size_bytes / (1024.0 * 1024.0 * 1024.0);
    double latency_us = c->base_us + hops * (inter ? c->inter_hop_us : c->intra_hop_us);
    if (collective == MS_ALL_TO_ALL)
        latency_us += c->all_to_all_penalty_us;
    return latency_us * 1e-6 + gibibytes * hops / ranks / rate;
}

ms_collective_prices ms_collective_prices_pytorch(ms_arena *arena, const ms_mesh *mesh,
                                                  const ms_pytorch_constants *constants,
                                                  long gpus_per_host)
{
    pytorch_prices *prices = MS_NEW(arena, pytorch_prices);
    prices->mesh = mesh;
    prices->constants = constants;
    long devices = 1;
    for (int i = mesh->num_axes - 1; i >= 0; i--) {
        devices *= mesh->axes[i].size;
        if (devices > gpus_per_host)
            prices->between_hosts |= 1U << i;
    }
    return (ms_collective_prices){pytorch_seconds, prices};
}
