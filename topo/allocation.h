/* Where the ranks of a job lie: which domain of each network level, slot, rail and NIC.
 * All commands place ranks by these functions alone.
 *
 * A job fills innermost domains in rank order with equally many ranks each, from slot 0
 * on. Their number is asked for, or chosen by the rule of ms_even_share. */
#ifndef MS_TOPO_ALLOCATION_H
#define MS_TOPO_ALLOCATION_H

#include "topo/cluster.h"

/* Ranks of a job of num_gpus GPUs in each innermost domain, if nobody asks for a number:
 * the largest divisor of num_gpus that a domain holds, in whole nodes, if that is at
 * least a quarter of the domain; otherwise the domain's size (the last is partly filled).
 * A domain of one node is used in whole. Sources: cloud.google.com/tpu/docs
 * (multislice-introduction: equal slices), Slurm topology/block (equal segments). */
long ms_even_share(const ms_cluster *cluster, long num_gpus);

/* The cluster as a job sees it: domains of each level hold the job's ranks only. `ranks`
 * is asked for by --ranks-per-domain; 0: ms_even_share. *out is `cluster` itself or lives
 * in cx->arena. MS_EINPUT if a domain cannot hold `ranks`, or not in whole nodes. */
ms_status ms_cluster_for_job(ms_ctx *cx, const ms_cluster *cluster, long num_gpus,
                             long ranks, const ms_cluster **out);

/* ms_cluster_load, then ms_cluster_for_job. */
ms_status ms_cluster_load_for_job(ms_ctx *cx, const char *name_or_path, long num_gpus,
                                  long ranks, const ms_cluster **out);

/* Sentence on domains that hold fewer ranks of a job than they have GPUs; NULL if all are
 * full, or there is only one and nobody asked. `cluster`: from ms_cluster_for_job. */
const char *ms_allocation_text(ms_arena *arena, const ms_cluster *cluster, long num_gpus);

/* The arithmetic that places a rank, for a cluster as a job sees it. */
typedef struct ms_allocation {
    long num_ranks;
    long domain_ranks[MS_MAX_LEVELS]; /* ranks in a full domain of each level */
    long rails[MS_MAX_LEVELS];        /* rails of each level; at least 1 */
    long ranks_per_nic;               /* ranks that share one NIC; at least 1 */
    long domain_nics;                 /* NICs of a full innermost domain */
} ms_allocation;

ms_allocation ms_allocation_of(const ms_cluster *cluster, long num_ranks);

static inline long ms_domain_of(const ms_allocation *p, int level, long rank)
{
    return rank / p->domain_ranks[level];
}

/* Place of a rank in its innermost domain, from 0. */
static inline long ms_slot_of(const ms_allocation *p, long rank)
{
    return rank % p->domain_ranks[0];
}

/* Rail of a rank at a level: slots take rails in turn. */
static inline long ms_rail_of(const ms_allocation *p, int level, long rank)
{
    return ms_slot_of(p, rank) % p->rails[level];
}

/* NIC of a rank; consecutive slots of a domain share one. NICs are numbered by domain. */
static inline long ms_nic_of(const ms_allocation *p, long rank)
{
    return ms_domain_of(p, 0, rank) * p->domain_nics +
           ms_slot_of(p, rank) / p->ranks_per_nic;
}

#endif
