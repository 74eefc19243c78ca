#include "topo/allocation.h"

#include "base/number.h"

#include <math.h>

/* ---- ranks per domain ---- */

/* GPUs of the job that share a node, where a domain has several nodes; otherwise 1. */
static long unit_of(const ms_cluster *cluster)
{
    return ms_level_gpus(&cluster->levels[0]) > cluster->gpus_per_node
               ? cluster->gpus_per_node
               : 1;
}

long ms_even_share(const ms_cluster *cluster, long num_gpus)
{
    const ms_level *inner = &cluster->levels[0];
    long whole = ms_level_gpus(inner), unit = unit_of(cluster);
    bool is_one_node = unit == 1 && inner->topology != MS_TORUS;
    if (whole == 0 || num_gpus <= whole || is_one_node)
        return whole;
    for (long share = whole; share >= whole / 4 && share > 0; share--)
        if (num_gpus % share == 0 && share % unit == 0)
            return share;
    return whole;
}

static ms_status check_ranks(ms_ctx *cx, const ms_cluster *cluster, long num_gpus,
                             long ranks)
{
    const ms_level *inner = &cluster->levels[0];
    long whole = ms_level_gpus(inner), unit = unit_of(cluster);
    if (whole == 0) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "%ld ranks per domain are asked for, but cluster \"%s\" is one domain, "
                "which holds all ranks",
                ranks, cluster->name);
        return ms_hint(cx, "leave out --ranks-per-domain");
    }
    if (ranks > whole) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "%ld ranks per domain are asked for, but a domain of level \"%s\" of "
                "cluster \"%s\" has %ld GPUs",
                ranks, inner->name, cluster->name, whole);
        return ms_hint(cx, "--ranks-per-domain %ld", ms_even_share(cluster, num_gpus));
    }
    if (ranks % unit == 0 || ranks >= num_gpus)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "%ld ranks per domain are asked for, which fill no whole nodes of %ld GPUs",
            ranks, unit);
    long below = ranks / unit * unit;
    return ms_hint(cx, "--ranks-per-domain %ld", below > 0 ? below : unit);
}

/* Lets the clusters that kinds of devices are like see the same number of ranks. */
static ms_status kinds_for_job(ms_ctx *cx, long num_gpus, long ranks, ms_cluster *job)
{
    ms_device_kind *kinds = MS_NEW_ARRAY(cx->arena, job->num_kinds, ms_device_kind);
    for (int k = 0; k < job->num_kinds; k++) {
        kinds[k] = job->kinds[k];
        if (kinds[k].like != NULL)
            MS_TRY(
                ms_cluster_for_job(cx, kinds[k].like, num_gpus, ranks, &kinds[k].like));
    }
    job->kinds = kinds;
    return MS_OK;
}

ms_status ms_cluster_for_job(ms_ctx *cx, const ms_cluster *cluster, long num_gpus,
                             long ranks, const ms_cluster **out)
{
    long whole = ms_level_gpus(&cluster->levels[0]);
    *out = cluster;
    if (ranks > 0)
        MS_TRY(check_ranks(cx, cluster, num_gpus, ranks));
    else
        ranks = ms_even_share(cluster, num_gpus);
    if (ranks == cluster->levels[0].gpus_per_domain)
        return MS_OK;
    ms_cluster *job = MS_NEW(cx->arena, ms_cluster);
    *job = *cluster;
    for (int i = 0; i < job->num_levels; i++) {
        ms_level *level = &job->levels[i];
        level->whole_gpus = ms_level_gpus(level);
        level->gpus_per_domain = level->whole_gpus / whole * ranks;
    }
    *out = job;
    return kinds_for_job(cx, num_gpus, ranks, job);
}

ms_status ms_cluster_load_for_job(ms_ctx *cx, const char *name_or_path, long num_gpus,
                                  long ranks, const ms_cluster **out)
{
    const ms_cluster *whole;
    MS_TRY(ms_cluster_load(cx, name_or_path, &whole));
    return ms_cluster_for_job(cx, whole, num_gpus, ranks, out);
}

const char *ms_allocation_text(ms_arena *arena, const ms_cluster *cluster, long num_gpus)
{
    const ms_level *inner = &cluster->levels[0];
    long ranks = inner->gpus_per_domain, whole = ms_level_gpus(inner);
    if (ranks == 0 || num_gpus <= ranks || (ranks == whole && num_gpus % ranks == 0))
        return NULL;
    long full = num_gpus / ranks, rest = num_gpus % ranks;
    const char *last =
        rest == 0 ? "" : ms_arena_printf(arena, ", the last domain %ld", rest);
    return ms_arena_printf(
        arena, "%ld %s domain%s of %ld GPUs hold%s %ld ranks%s%s (--ranks-per-domain)",
        full, inner->name, full == 1 ? "" : "s", whole, full == 1 ? "s" : "", ranks,
        full == 1 ? "" : " each", last);
}

/* ---- places ---- */

ms_allocation ms_allocation_of(const ms_cluster *cluster, long num_ranks)
{
    ms_allocation p = {.num_ranks = num_ranks};
    for (int i = 0; i < cluster->num_levels; i++) {
        long size = cluster->levels[i].gpus_per_domain;
        p.domain_ranks[i] = size > 0 ? size : num_ranks;
        p.rails[i] = cluster->levels[i].rails > 0 ? cluster->levels[i].rails : 1;
    }
    double nics = cluster->num_levels > 1 ? cluster->levels[1].nics_per_gpu : 1.0;
    p.ranks_per_nic = nics > 0.0 && nics < 1.0 ? lround(ms_min(1.0 / nics, 4096.0)) : 1;
    p.domain_nics = (p.domain_ranks[0] + p.ranks_per_nic - 1) / p.ranks_per_nic;
    return p;
}
