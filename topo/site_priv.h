/* Parts of reading clusters from the texts of tools. */
#ifndef MS_TOPO_SITE_PRIV_H
#define MS_TOPO_SITE_PRIV_H

#include "topo/site.h"

/* One import under way. */
typedef struct ms_site_reader {
    ms_ctx *cx;
    const ms_site_options *options;
    ms_site *out;
} ms_site_reader;

ms_loc ms_site_loc(const ms_site_reader *r, int line, int column);

/* ---- a node ---- */

#define MS_SITE_MAX_DEVICES 128 /* most GPUs, and most NICs, of a node */

/* How near a GPU and a NIC are: classes of nvidia-smi, nearest first. */
typedef enum ms_site_path {
    MS_PATH_PIX = 1, /* at most one PCIe bridge */
    MS_PATH_PXB,     /* several bridges */
    MS_PATH_PHB,     /* a host bridge */
    MS_PATH_NODE,    /* several host bridges of a NUMA node */
    MS_PATH_SYS      /* across sockets */
} ms_site_path;
/* Words of ms_site_path from 1: "PIX", NULL-ended; [0] is "X". */
extern const char *const ms_site_path_names[];

typedef struct ms_site_node {
    int num_gpus, num_nics;
    /* (num_gpus, num_gpus) NVLinks between two GPUs, or of each into switches */
    int *links;
    bool has_links;          /* false: `links` are not known, and as those of the base */
    int *paths;              /* (num_gpus, num_nics) ms_site_path */
    const char **nics;       /* (num_nics) names */
    double *nic_bytes_per_s; /* (num_nics) rates; 0: not known */
    double pcie_bytes_per_s; /* rate of a GPU's PCIe link each way; 0: not known */
} ms_site_node;

/* Allocates the arrays of a node with given numbers of devices; links are known to be
 * none, rates are not known. */
void ms_site_node_open(ms_arena *arena, int num_gpus, int num_nics, ms_site_node *out);
/* Sets the node of out->cluster, which is the base's until then. MS_EINPUT. */
ms_status ms_site_node_apply(ms_site_reader *r, const ms_site_node *node);

ms_status ms_site_read_matrix(ms_site_reader *r, const char *text, size_t length);
ms_status ms_site_read_slurm(ms_site_reader *out, const char *text, size_t length);
ms_status ms_site_read_nccl(ms_site_reader *r, const char *text, size_t length);

#endif
