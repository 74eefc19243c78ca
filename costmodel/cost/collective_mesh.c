#include "costmodel/cost/collective_mesh.h"

#include "topo/torus.h"

long ms_axis_set_ranks(const ms_mesh *mesh, ms_axis_set axes)
{
    long ranks = 1;
    for (int i = 0; i < mesh->num_axes; i++)
        if (axes >> i & 1)
            ranks *= mesh->axes[i].size;
    return ranks;
}

static ms_group group_of_axes(const ms_mesh *mesh, ms_axis_set axes)
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
    ms_group group = group_of_axes(mesh, axes);
    ms_span span = ms_group_span(&group, mesh->num_ranks, cluster);
    return cluster->levels[span.tier].name;
}

/* ---- a cluster ---- */

typedef struct set_laws {
    bool is_known;
    ms_collective_law of[MS_NUM_COLLECTIVES];
} set_laws;

typedef struct cluster_prices {
    const ms_mesh *mesh;
    const ms_cluster *cluster;
    const ms_profile *profile;
    /* [axis set] cost laws, filled in on first use; memory is allocated before, since the
     * arena may be rewound by then */
    set_laws *sets;
} cluster_prices;

static void resolve(const cluster_prices *prices, ms_axis_set axes)
{
    ms_group group = group_of_axes(prices->mesh, axes);
    const ms_level *inner = &prices->cluster->levels[0];
    ms_torus torus;
    if (inner->topology == MS_TORUS)
        torus = ms_torus_of_mesh(inner, prices->mesh);
    ms_span span = ms_group_span_on(&group, prices->mesh->num_ranks, prices->cluster,
                                    inner->topology == MS_TORUS ? &torus : NULL);
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
