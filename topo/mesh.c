/* Ranks of a mesh are row-major: rank = sum of coordinate * stride; last stride 1. */
#include "topo/mesh.h"

#include "topo/layout_priv.h"
#include "topo/mesh_footing.h"
#include "topo/torus.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

ms_mesh ms_mesh_make(const char *const *names, const long *sizes, int num_axes)
{
    assert(num_axes >= 0 && num_axes <= MS_MAX_AXES);
    ms_mesh mesh = {.num_axes = num_axes, .num_ranks = 1};
    for (int i = num_axes - 1; i >= 0; i--) {
        assert(sizes[i] >= 1);
        mesh.axes[i] = (ms_mesh_axis){names[i], sizes[i], mesh.num_ranks};
        mesh.num_ranks *= sizes[i];
    }
    return mesh;
}

int ms_mesh_find(const ms_mesh *mesh, const char *name)
{
    for (int i = 0; i < mesh->num_axes; i++)
        if (strcmp(mesh->axes[i].name, name) == 0)
            return i;
    return -1;
}

static bool contains(const int *axes, int num_axes, int axis)
{
    for (int i = 0; i < num_axes; i++)
        if (axes[i] == axis)
            return true;
    return false;
}

ms_group ms_mesh_group(const ms_mesh *mesh, const int *axes, int num_axes)
{
    ms_group group = {.size = 1};
    for (int i = 0; i < mesh->num_axes; i++) {
        const ms_mesh_axis *axis = &mesh->axes[i];
        if (axis->size == 1 || !contains(axes, num_axes, i))
            continue;
        group.size *= axis->size;
        group.num_modes = ms_modes_append(group.modes, group.num_modes,
                                          (ms_mode){axis->size, axis->stride});
    }
    return group;
}

/* The rank with coordinate 0 in every mode, in the group that contains `rank`. */
static long group_base(const ms_group *group, long rank)
{
    long base = rank;
    for (int i = 0; i < group->num_modes; i++)
        base -=
            rank / group->modes[i].stride % group->modes[i].size * group->modes[i].stride;
    return base;
}

/* Distance from the base of the group to its index-th rank, ascending by coordinate. */
static long group_offset(const ms_group *group, long index)
{
    return ms_modes_at(group->modes, group->num_modes, index);
}

void ms_mesh_group_ranks(const ms_mesh *mesh, const ms_group *group, long rank, long *out)
{
    assert(rank >= 0 && rank < mesh->num_ranks);
    long base = group_base(group, rank);
    for (long i = 0; i < group->size; i++)
        out[i] = base + group_offset(group, i);
}

/* Ranks of a group in each domain of D ranks: product over its modes n:d (n ranks, d
 * apart) of n if n d divides D, D / d if d divides D and D divides n d, 1 if D divides d;
 * 0 if a mode is none of these. Source: CuTe layout algebra, logical_divide. */
static long aligned_ranks_per_domain(const ms_group *group, long domain)
{
    long ranks = 1;
    for (int i = 0; i < group->num_modes; i++) {
        long size = group->modes[i].size;
        long stride = group->modes[i].stride;
        long extent = size * stride;
        if (domain % extent == 0)
            ranks *= size;
        else if (domain % stride == 0 && extent % domain == 0)
            ranks *= domain / stride;
        else if (stride % domain != 0)
            return 0;
    }
    return ranks;
}

/* Entry of a cache of ms_footing_of, shared by threads, as searches repeat groups. */
typedef struct cached_footing {
    atomic_bool busy; /* true while a thread reads or writes the entry */
    ms_group group;
    long num_ranks, domain;
    ms_footing footing;
} cached_footing;

#define FOOTING_CACHE_SIZE 32768

static bool same_group(const ms_group *a, const ms_group *b)
{
    if (a->size != b->size || a->num_modes != b->num_modes)
        return false;
    for (int i = 0; i < a->num_modes; i++)
        if (a->modes[i].size != b->modes[i].size ||
            a->modes[i].stride != b->modes[i].stride)
            return false;
    return true;
}

static ms_footing find_footing(const ms_group *group, long num_ranks, long domain)
{
    static cached_footing table[FOOTING_CACHE_SIZE];
    unsigned long hash = (unsigned long)domain;
    for (int i = 0; i < group->num_modes; i++)
        hash = hash * 1000003UL +
               (unsigned long)(group->modes[i].size * 8191 + group->modes[i].stride);
    cached_footing *entry = &table[(hash ^ (hash >> 17)) % FOOTING_CACHE_SIZE];
    if (atomic_exchange_explicit(&entry->busy, true, memory_order_acquire))
        /* computes the entry rather than waiting for the other thread */
        return ms_footing_of(group, num_ranks, domain);
    if (entry->num_ranks != num_ranks || entry->domain != domain ||
        !same_group(&entry->group, group)) {
        entry->group = *group;
        entry->num_ranks = num_ranks;
        entry->domain = domain;
        entry->footing = ms_footing_of(group, num_ranks, domain);
    }
    ms_footing footing = entry->footing;
    atomic_store_explicit(&entry->busy, false, memory_order_release);
    return footing;
}

/* Ranks of a group in each domain of `domain` ranks (0: all ranks); if uneven (domains of
 * 72), the mean in the group that touches most domains, rounded up. *narrowest (unless
 * NULL) is set as in ms_span. */
static long ranks_per_domain(const ms_group *group, long num_ranks, long domain,
                             long *narrowest)
{
    long ranks = group->size, least = group->size;
    if (domain != 0 && domain < num_ranks)
        ranks = least = aligned_ranks_per_domain(group, domain);
    if (ranks == 0) {
        ms_footing footing = find_footing(group, num_ranks, domain);
        assert(footing.num_domains > 0);
        ranks = (group->size + footing.num_domains - 1) / footing.num_domains;
        least = footing.narrowest > 0 && footing.narrowest < ranks ? footing.narrowest
                                                                   : ranks;
    }
    if (narrowest != NULL)
        *narrowest = least;
    return ranks;
}

/* Whether all ranks of a group that are in different domains are on one rail: groups with
 * equal slots in each domain meet rank by rank; else no stride may leave the rail. */
static bool keeps_rails(const ms_group *group, long domain, long rails)
{
    if (domain == 0 || aligned_ranks_per_domain(group, domain) > 0)
        return true;
    for (int i = 0; i < group->num_modes; i++)
        if (domain % rails != 0 || group->modes[i].stride % rails != 0)
            return false;
    return true;
}

static int ring_tier_of(const ms_group *group, const ms_cluster *cluster, int tier)
{
    int top = tier;
    for (; top > 0 && top < cluster->num_levels - 1; top++) {
        long rails = cluster->levels[top].rails;
        if (rails <= 1 || keeps_rails(group, cluster->levels[0].gpus_per_domain, rails))
            break;
    }
    return top > tier ? top : 0;
}

/* A torus arranged for one group alone: its blocks end where the group's modes do. */
static ms_torus torus_of_group(const ms_group *group, long num_ranks,
                               const ms_level *level)
{
    ms_mesh mesh = {.num_axes = group->num_modes, .num_ranks = num_ranks};
    for (int i = 0; i < group->num_modes; i++)
        mesh.axes[i] = (ms_mesh_axis){.size = group->modes[i].size,
                                      .stride = group->modes[i].stride};
    return ms_torus_of_mesh(level, &mesh);
}

ms_span ms_group_span(const ms_group *group, long num_ranks, const ms_cluster *cluster)
{
    if (cluster->levels[0].topology != MS_TORUS)
        return ms_group_span_on(group, num_ranks, cluster, NULL);
    ms_torus torus = torus_of_group(group, num_ranks, &cluster->levels[0]);
    return ms_group_span_on(group, num_ranks, cluster, &torus);
}

ms_span ms_group_span_on(const ms_group *group, long num_ranks, const ms_cluster *cluster,
                         const ms_torus *torus)
{
    ms_span span = {.size = group->size, .num_levels = cluster->num_levels};
    span.tier = cluster->num_levels - 1;
    for (int i = cluster->num_levels - 1; i >= 0; i--) {
        long domain = cluster->levels[i].gpus_per_domain;
        span.per_domain[i] =
            ranks_per_domain(group, num_ranks, domain, i == 0 ? &span.narrowest : NULL);
        if (span.per_domain[i] == group->size)
            span.tier = i;
    }
    span.ring_tier = ring_tier_of(group, cluster, span.tier);
    if (torus != NULL)
        span.torus = ms_torus_span_of(torus, group, span.per_domain[0]);
    return span;
}
