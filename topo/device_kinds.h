/* Kinds of devices of a mixed cluster (ms_cluster.kinds): which ranks have them, and the
 * cluster as ranks of several kinds see it. docs/formulas 5.8.
 *
 * Ranks take the GPUs of a cluster in the order of its groups, or from the last group to
 * the first (`reversed`); inside a group nodes keep their order. */
#ifndef MS_TOPO_DEVICE_KINDS_H
#define MS_TOPO_DEVICE_KINDS_H

#include "topo/cluster.h"

/* A set of kinds: bit k stands for kind k. */
typedef unsigned ms_kind_set;
#define MS_NUM_KIND_SETS (1 << MS_MAX_DEVICE_KINDS)

/* The kinds of the `num` ranks of a job from rank `first` on, 0 if all devices are alike.
 * `cluster`: from ms_cluster_for_job. */
ms_kind_set ms_kinds_of_ranks(const ms_cluster *cluster, bool reversed, long first,
                              long num);
/* Counts the first num_ranks ranks by kind. */
void ms_count_kinds(const ms_cluster *cluster, bool reversed, long num_ranks,
                    long counts[MS_MAX_DEVICE_KINDS]);

/* The device of a kind, as listed. */
const ms_device *ms_kind_device(const ms_cluster *cluster, int kind);
/* Name of a kind, for people: its device, with what is slow. */
const char *ms_kind_text(ms_arena *arena, const ms_cluster *cluster, int kind);
/* Names of the kinds of a set, with " + " between them. */
const char *ms_kinds_text(ms_arena *arena, const ms_cluster *cluster, ms_kind_set kinds);

/* The cluster, without kinds, as a group of ranks of all these kinds sees it: the device of
 * kind `slowest` with the least memory of all, and of each level of the network the least
 * bandwidth and the largest latency. Ranks of several groups meet in the network between
 * them. Lives in the arena. */
ms_cluster *ms_cluster_of_kinds(ms_arena *arena, const ms_cluster *cluster,
                                ms_kind_set kinds, int slowest);

/* Sets device, levels and network of a mixed cluster to what all its devices have at least,
 * from its kinds and the network between its groups; other members stay. */
void ms_cluster_join_kinds(ms_arena *arena, ms_cluster *cluster);

/* Slow nodes, by their numbers in the file. */
typedef struct ms_slow_nodes {
    long first, last;
    double compute_frac, link_frac; /* speeds as in ms_device_kind, at most 1 */
} ms_slow_nodes;
/* Least fraction of its listed speed at which a slow node can run. */
#define MS_LEAST_SLOW_FRAC 0.01

/* Makes nodes of a cluster slow. MS_EINPUT at `loc`: no such node, one that is slow
 * already, or more than MS_MAX_DEVICE_KINDS kinds. */
ms_status ms_cluster_slow_down(ms_ctx *cx, ms_loc loc, const ms_slow_nodes *slow,
                               ms_cluster *cluster);
/* Nodes that a text for ms_cluster_slow_down_by names, and those with ranks of a job. */
typedef struct ms_slow_count {
    long all, in_job;
} ms_slow_count;
/* Counts them in a cluster that the text made slow, with the first num_ranks ranks. */
ms_slow_count ms_slow_nodes_count(const ms_cluster *cluster, const char *text,
                                  bool reversed, long num_ranks);
/* Copies a cluster and makes nodes slow by a text such as "3:0.8,7-9:0.9:0.5": nodes,
 * compute_frac and perhaps link_frac. NULL, or the text that made them slow already: *out
 * becomes `cluster`. MS_EINPUT. */
ms_status ms_cluster_slow_down_by(ms_ctx *cx, const ms_cluster *cluster, const char *text,
                                  const ms_cluster **out);

#endif
