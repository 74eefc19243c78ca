/* Shipped clusters with other rails, oversubscription and shares of domains. */
#ifndef MS_TESTS_SUPPORT_JOB_CLUSTERS_H
#define MS_TESTS_SUPPORT_JOB_CLUSTERS_H

#include "topo/allocation.h"

#include "tests/test.h"

typedef struct job_cluster {
    const char *name;
    long gpus, ranks_per_domain; /* 0: the rule's */
    /* rails of level 1, and GPUs in its domains where it is added below the last level; 0:
     * as in the file */
    long rails, leaf_gpus;
    double oversubscription[2]; /* levels 1 and 2; 0: as in the file */
} job_cluster;

static inline const ms_cluster *job_cluster_of(ms_ctx *cx, const job_cluster *j)
{
    const ms_cluster *file, *out;
    ASSERT_OK(ms_cluster_load(cx, j->name, &file), cx);
    ms_cluster *c = MS_NEW(cx->arena, ms_cluster);
    *c = *file;
    if (j->leaf_gpus > 0) {
        assert_int_equal(c->num_levels, 2);
        c->levels[c->num_levels++] = c->levels[1];
        c->levels[2].name = "top";
        c->levels[1].gpus_per_domain = j->leaf_gpus;
    }
    if (j->rails > 0)
        c->levels[1].rails = j->rails;
    for (int i = 0; i < 2; i++)
        if (j->oversubscription[i] > 0.0)
            c->levels[1 + i].oversubscription = j->oversubscription[i];
    ASSERT_OK(ms_cluster_for_job(cx, c, j->gpus, j->ranks_per_domain, &out), cx);
    return out;
}

#endif
