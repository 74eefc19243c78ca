/* A cluster: one kind of device, and levels of network between the devices, innermost
 * first. Figures come from configs/clusters/, each with source and date; unknown is
 * NaN. */
#ifndef MS_TOPO_CLUSTER_H
#define MS_TOPO_CLUSTER_H

#include "base/diag.h"
#include "base/figure.h"

typedef enum ms_dtype {
    MS_FP64,
    MS_FP32,
    MS_TF32,
    MS_BF16,
    MS_FP16,
    MS_FP8,
    MS_FP4,
    MS_NUM_DTYPES
} ms_dtype;

/* "fp64" "fp32" "tf32" "bf16" "fp16" "fp8" "fp4", NULL-ended. */
extern const char *const ms_dtype_names[];
/* Bytes of one element (fp4 is half a byte). */
double ms_dtype_bytes(ms_dtype dtype);
/* Of an activation or weight where products are computed in it: operands of FP8 and FP4
 * are made from bf16 when they are needed. */
double ms_stored_bytes(ms_dtype compute);

typedef struct ms_device {
    const char *name;    /* "H100 SXM5 80GB" */
    const char *profile; /* name of the cost profile in configs/profiles/ */
    const char *unit;    /* what one is called: "rank"; NULL: "GPU" */
    double memory_bytes; /* usable HBM capacity as the driver reports it */
    double hbm_bytes_per_s;
    double peak_flop_per_s[MS_NUM_DTYPES]; /* dense; NaN: not supported or unknown */
    long num_sms;
    double tdp_w; /* NaN: unknown */
} ms_device;

/* How the GPUs of a domain are joined. */
typedef enum ms_topology {
    MS_SWITCH,    /* each has a port into switches: any pair at the full rate */
    MS_FULL_MESH, /* a wire between each pair: a pair has bandwidth / (GPUs - 1) */
    MS_TORUS      /* wires to both neighbours in each dim: one has bandwidth / (2 dims) */
} ms_topology;
extern const char *const ms_topology_names[]; /* "switch" "mesh" "torus", NULL */

#define MS_MAX_TORUS_DIMS 3
/* Sum of the sides of a torus: a message passes fewer wires. */
#define MS_MAX_TORUS_SIDES 112

/* One level of the network. A domain of level l holds `gpus_per_domain` consecutive GPUs
 * that reach each other through this level or one below it; the outermost level has
 * gpus_per_domain 0: everything. */
typedef struct ms_level {
    const char *name; /* "nvlink", "leaf", "spine" */
    long gpus_per_domain;
    double bandwidth_bytes_per_s; /* per GPU and direction, before oversubscription */
    /* of one message over this level, beyond that of a send inside the innermost level */
    double latency_s;
    double oversubscription; /* 1: full bisection */
    /* NICs that one GPU can use alone; below 1: shared by several; 0 for NVLink levels */
    double nics_per_gpu;
    int topology; /* ms_topology; other than MS_SWITCH at the innermost level only */
    int num_dims; /* of a torus; 0 otherwise */
    long dims[MS_MAX_TORUS_DIMS];
    /* torus: the ends of a dim are joined in parts of it whose sides are all multiples of
     * this */
    long wrap;
    /* GPU i of every node is on rail i modulo this, each with switches of its own in a
     * domain; 0: one set for all */
    long rails;
} ms_level;

/* GPUs of each domain where a job gets equally many of every one: the most that divide
 * them; of the whole domain where one is enough. */
long ms_level_even_share(const ms_level *level, long num_gpus);

#define MS_MAX_LEVELS 4

typedef struct ms_cluster {
    const char *name;
    const char *description;
    const char *source; /* where the figures come from, with date */
    /* "infiniband" "roce" "efa" "ethernet" "none": key of the profile's network
     * coefficients */
    const char *network;
    ms_device device;
    long gpus_per_node;
    long max_gpus; /* 0: no limit stated */
    int num_levels;
    ms_level levels[MS_MAX_LEVELS];
    double usd_per_gpu_hour; /* NaN: unknown */
} ms_cluster;

/* By name or alias ("h100") from configs/clusters/, or a path. */
ms_status ms_cluster_load(ms_ctx *cx, const char *name_or_path, const ms_cluster **out);
ms_status ms_cluster_read(ms_ctx *cx, ms_jval root, ms_cluster *out);
void ms_cluster_print(FILE *out, const ms_cluster *cluster);
void ms_cluster_write_json(ms_jout *out,
                           const ms_cluster *cluster); /* meshsim.cluster/1 */
/* Its numbers, by the tables that read them: "device.hbm", "levels.nvlink.bandwidth". */
void ms_cluster_figures(const ms_cluster *cluster, ms_figures *list);
ms_status ms_cluster_names(ms_ctx *cx, const char *const **names, int *num_names);

#endif
