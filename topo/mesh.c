/* Meshes, groups of ranks along their axes, and how a group lie on the levels of a cluster.
 * Ranks are row-major: rank = sum of coordinate * stride, the last axis has stride 1. */
#include "topo/mesh.h"

#include "base/number.h"
#include "topo/layout_priv.h"
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

ms_layout ms_group_layout(ms_arena *arena, const ms_group *group)
{
    return ms_layout_of_modes(arena, MS_LEXICOGRAPHIC, group->modes, group->num_modes);
}

void ms_mesh_group_ranks(const ms_mesh *mesh, const ms_group *group, long rank, long *out)
{
    assert(rank >= 0 && rank < mesh->num_ranks);
    long base = group_base(group, rank);
    for (long i = 0; i < group->size; i++)
        out[i] = base + group_offset(group, i);
}

/* Ranks of a group in one domain of D ranks, where every mode n:d fits the domains exactly:
 *   whole mode inside (D a multiple of n d): n;  neighbours in different domains (d a multiple of D): 1;
 *   otherwise D/d ranks, if D is a multiple of d and n d a multiple of D.
 * Source: composition of the group's layout with the division of ranks into domains (CuTe
 * layout algebra, logical_divide). 0 when a mode straddles domains unevenly. */
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

/* Domains that one group touches. Ranks ascend with the coordinate, because the modes of
 * a row-major mesh are nested. */
static long count_domains(const ms_group *group, long base, long domain)
{
    long num_domains = 0, previous = -1;
    for (long i = 0; i < group->size; i++) {
        long current = (base + group_offset(group, i)) / domain;
        num_domains += current != previous;
        previous = current;
    }
    return num_domains;
}

/* One mode, neighbours nearer than a domain. Its groups begin at q extent + s, s <
 * stride; places of q extent in a domain repeat after domain / gcd of them; of the places
 * from each the last before the domain's end touches most domains. */
static long one_mode_domains(long size, long stride, long num_ranks, long domain)
{
    long extent = size * stride, most = 1;
    long num_places = domain / ms_greatest_divisor(extent, domain);
    for (long q = 0; q < num_places && q < num_ranks / extent; q++) {
        long last = q * extent % domain + stride - 1;
        long place = last < domain ? last : domain - 1;
        long num_domains = (place + extent - stride) / domain + 1;
        most = num_domains > most ? num_domains : most;
    }
    return most;
}

/* How the groups of an axis lie on domains that they do not fill evenly. */
typedef struct footing {
    long num_domains; /* of the group that touches most */
    /* fewest ranks of any group in a domain that does not hold all of it */
    long narrowest;
} footing;

/* The job ends in the middle of the domain. */
static bool is_cut(long rank, long num_ranks, long domain)
{
    return num_ranks % domain != 0 && rank / domain == num_ranks / domain;
}

static void note_narrow(footing *lie, long ranks, long of)
{
    if (ranks < of && (lie->narrowest == 0 || ranks < lie->narrowest))
        lie->narrowest = ranks;
}

static long narrowest_by_hand(const ms_group *group, long base, long num_ranks,
                              long domain)
{
    footing lie = {0};
    long ranks = 0;
    for (long i = 0; i < group->size; i++) {
        long at = base + group_offset(group, i);
        bool ends = i + 1 == group->size ||
                    (base + group_offset(group, i + 1)) / domain != at / domain;
        ranks++;
        if (ends && !is_cut(at, num_ranks, domain))
            note_narrow(&lie, ranks, group->size);
        ranks = ends ? 0 : ranks;
    }
    return lie.narrowest;
}

/* One mode, neighbours nearer than a domain: of its first domain, its last, and those between. */
static void note_one_mode(footing *lie, const ms_group *group, long first, long num_ranks,
                          long domain)
{
    long size = group->size, stride = group->modes[0].stride;
    long last = first + (size - 1) * stride, place = first % domain;
    if (first / domain == last / domain)
        return;
    note_narrow(lie, (domain - place + stride - 1) / stride, size);
    if (!is_cut(last, num_ranks, domain))
        note_narrow(lie, last % domain / stride + 1, size);
    if (last / domain - first / domain > 1)
        note_narrow(lie, domain / stride, size);
}

static footing footing_of_one_mode(const ms_group *group, long num_ranks, long domain)
{
    long size = group->size, stride = group->modes[0].stride, extent = size * stride;
    footing lie = {.num_domains = one_mode_domains(size, stride, num_ranks, domain)};
    long num_places = domain / ms_greatest_divisor(extent, domain);
    for (long q = 0; q < num_ranks / extent; q++)
        if (q < num_places || q + 1 == num_ranks / extent)
            for (long s = 0; s < stride; s++)
                note_one_mode(&lie, group, q * extent + s, num_ranks, domain);
    return lie;
}

#define MAX_DOMAIN 4096

/* Looks at every group. How a group lie depends on where in a domain it begins, and that
 * repeats after the least common multiple of the group's extent and the domain. */
static footing footing_by_hand(const ms_group *group, long num_ranks, long domain)
{
    bool seen[MAX_DOMAIN] = {false};
    footing lie = {.num_domains = 1};
    long extent = group->modes[0].size * group->modes[0].stride;
    long period = extent / ms_greatest_divisor(extent, domain) * domain;
    for (long rank = 0; rank < num_ranks && rank < period; rank++) {
        long place = rank % domain;
        if ((place < MAX_DOMAIN && seen[place]) || group_base(group, rank) != rank)
            continue;
        if (place < MAX_DOMAIN)
            seen[place] = true;
        long num_domains = count_domains(group, rank, domain);
        lie.num_domains = num_domains > lie.num_domains ? num_domains : lie.num_domains;
        long narrowest = narrowest_by_hand(group, rank, num_ranks, domain);
        if (narrowest > 0)
            note_narrow(&lie, narrowest, group->size);
    }
    return lie;
}

/* A search asks for the same few groups again and again. One table for all threads: a
 * rank of a run is a thread too, and would clear a table of its own at its start. */
typedef struct known_footing {
    atomic_bool busy; /* a thread reads or writes it */
    ms_group group;
    long num_ranks, domain;
    footing lie;
} known_footing;

#define NUM_KNOWN 32768

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

static footing find_footing(const ms_group *group, long num_ranks, long domain)
{
    return group->num_modes == 1 && group->modes[0].stride < domain
               ? footing_of_one_mode(group, num_ranks, domain)
               : footing_by_hand(group, num_ranks, domain);
}

static footing remembered_footing(const ms_group *group, long num_ranks, long domain)
{
    static known_footing table[NUM_KNOWN];
    unsigned long hash = (unsigned long)domain;
    for (int i = 0; i < group->num_modes; i++)
        hash = hash * 1000003UL +
               (unsigned long)(group->modes[i].size * 8191 + group->modes[i].stride);
    known_footing *known = &table[(hash ^ (hash >> 17)) % NUM_KNOWN];
    if (atomic_exchange_explicit(&known->busy, true, memory_order_acquire))
        return find_footing(group, num_ranks, domain); /* rather than wait */
    if (known->num_ranks != num_ranks || known->domain != domain ||
        !same_group(&known->group, group)) {
        known->group = *group;
        known->num_ranks = num_ranks;
        known->domain = domain;
        known->lie = find_footing(group, num_ranks, domain);
    }
    footing lie = known->lie;
    atomic_store_explicit(&known->busy, false, memory_order_release);
    return lie;
}

/* Ranks of a group in each domain; for domains that groups do not fill evenly, such as 72
 * GPUs, of the group that touches most of them. `narrowest` (NULL: not wanted) as in ms_span. */
static long ranks_per_domain(const ms_group *group, long num_ranks, long domain,
                             long *narrowest)
{
    long ranks = group->size, least = group->size;
    if (domain != 0 && domain < num_ranks)
        ranks = least = aligned_ranks_per_domain(group, domain);
    if (ranks == 0) {
        footing lie = remembered_footing(group, num_ranks, domain);
        assert(lie.num_domains > 0);
        ranks = (group->size + lie.num_domains - 1) / lie.num_domains;
        least = lie.narrowest > 0 && lie.narrowest < ranks ? lie.narrowest : ranks;
    }
    if (narrowest != NULL)
        *narrowest = least;
    return ranks;
}

/* As if the group were the only one: cuts where its modes begin and end. */
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
    long per_node = ranks_per_domain(group, num_ranks, cluster->gpus_per_node, NULL);
    span.siblings_per_node = (double)cluster->gpus_per_node / (double)per_node;
    if (torus != NULL)
        span.torus = ms_torus_span_of(torus, group, span.per_domain[0]);
    return span;
}
