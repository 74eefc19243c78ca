/* Clusters from what tools say about a machine: the matrix of `nvidia-smi topo -m` and
 * NCCL's topology describe a node, the topology of Slurm switches or blocks. What such a
 * text lacks is that of a base cluster. */
#ifndef MS_TOPO_SITE_H
#define MS_TOPO_SITE_H

#include "base/texts.h"
#include "topo/cluster.h"

/* Names of the formats: "nvidia-smi" "slurm" "nccl-topology", NULL. */
extern const char *const ms_site_format_names[];

typedef struct ms_site_options {
    const char *name;       /* the file in messages */
    const ms_cluster *base; /* gives device, rates and all else that the text lacks */
    double nic_bytes_per_s; /* rate of a NIC; 0: the text's, or the base's */
    double
        nvlink_bytes_per_s; /* rate of one NVLink each way; 0: as the base's GPUs have */
} ms_site_options;

typedef struct ms_site {
    ms_cluster cluster;
    ms_texts found;   /* facts of the text, in the units of data sheets */
    ms_texts assumed; /* facts that it lacks, and their origin */
    ms_texts ignored; /* facts that no cluster has */
} ms_site;

/* Reads `length` bytes of a format (index in ms_site_format_names). Time and memory are
 * linear in the length. Everything lives in cx->arena. MS_EINPUT at line and column:
 * syntax, a node that no cluster can state, a text that contradicts the base. */
ms_status ms_site_read(ms_ctx *cx, int format, const char *text, size_t length,
                       const ms_site_options *options, ms_site *out);

/* Writes a cluster of one kind of device as a cluster file (docs/configuration.md), which
 * ms_cluster_read reads as an equal cluster. */
void ms_cluster_write_file(ms_jout *out, const ms_cluster *cluster);

#endif
