/* A cluster: one kind of device, and the levels of the network from the innermost; a mixed
 * cluster has several kinds (topo/device_kinds.h). Numbers are from configs/clusters/,
 * with source and date; NaN if unknown. */
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

/* Names of the data types: "fp64" "fp32" "tf32" "bf16" "fp16" "fp8" "fp4", NULL-ended. */
extern const char *const ms_dtype_names[];
/* Bytes of one element of a data type (0.5 for fp4). */
double ms_dtype_bytes(ms_dtype dtype);
/* Bytes per element of a stored activation or weight, whose matrix products run in type
 * `compute`: 2 for FP8 and FP4, which are converted from bf16 when needed. */
double ms_stored_bytes(ms_dtype compute);

typedef struct ms_device {
    const char *name;       /* name of the device: "H100 SXM5 80GB" */
    const char *profile;    /* name of the cost profile in configs/profiles/ */
    const char *unit;       /* word for one device in messages: "rank"; NULL: "GPU" */
    double memory_bytes;    /* usable HBM as the driver reports it */
    double hbm_bytes_per_s; /* listed bandwidth of the memory */
    /* [ms_dtype] rate of dense matrix products; NaN: unknown */
    double peak_flop_per_s[MS_NUM_DTYPES];
    ms_loc peak_loc; /* where the file states the peaks */
    long num_sms;    /* streaming multiprocessors */
    double tdp_w;    /* power limit; NaN: unknown */
    /* NVIDIA's compute capability (developer.nvidia.com/cuda-gpus): 8.9; NaN: not stated */
    double compute_capability;
    /* speed of every kernel / that of a device as listed: below 1 in slow nodes; 0: 1 */
    double compute_frac;
} ms_device;

/* Bandwidths of copies between devices and host memory. NaN: unknown. */
typedef struct ms_host_link {
    double bytes_per_s;        /* one device's each way, as large copies reach it */
    long gpus_per_link;        /* devices that share a link to the host at that rate */
    double memory_bytes_per_s; /* listed bandwidth of a node's host memory */
    const char *source;        /* NULL if both are unknown */
} ms_host_link;

/* How the GPUs of one domain are connected. */
typedef enum ms_topology {
    /* each GPU has a port into switches: any pair communicates at the full rate */
    MS_SWITCH,
    MS_FULL_MESH, /* a link between each pair of GPUs, with bandwidth / (GPUs - 1) */
    /* links to both neighbours in each dimension, each with bandwidth / (2 dimensions) */
    MS_TORUS
} ms_topology;
/* names of ms_topology: "switch" "mesh" "torus", NULL-ended */
extern const char *const ms_topology_names[];

#define MS_MAX_TORUS_DIMS 3
/* Limit of the sum of the sides of a torus; a route inside it has fewer links. */
#define MS_MAX_TORUS_SIDES 112

/* A level of the network. A domain is gpus_per_domain consecutive GPUs; the level
 * connects those GPUs of a domain that no inner level connects. */
typedef struct ms_level {
    const char *name;     /* name of the level: "nvlink", "leaf", "spine" */
    long gpus_per_domain; /* GPUs in a domain; 0: all (the outermost level) */
    /* GPUs of a domain in which a job takes gpus_per_domain only (topo/allocation.h); 0:
     * the same */
    long whole_gpus;
    double bandwidth_bytes_per_s; /* per GPU and direction, not oversubscribed */
    double latency_s; /* latency that a message over this level has beyond level 0's */
    /* bandwidth of an inner domain's GPUs / bandwidth of its uplinks to this level */
    double oversubscription;
    double nics_per_gpu; /* NICs of each GPU; below 1: shared; 0: none (NVLink) */
    int topology; /* ms_topology; only the innermost level may be other than MS_SWITCH */
    int num_dims; /* number of dimensions of a torus; 0 for other topologies */
    long dims[MS_MAX_TORUS_DIMS]; /* sides of a torus in GPUs */
    long wrap; /* torus: a box with all sides multiples of this closes into rings */
    /* number of separate rails: GPU i of a node is on rail i mod rails; 0: none */
    long rails;
} ms_level;

/* GPUs of a whole domain, the job's and others; 0: all (the outermost level). */
long ms_level_gpus(const ms_level *level);

#define MS_MAX_LEVELS 4

/* Most kinds of devices in a cluster. */
#define MS_MAX_DEVICE_KINDS 4

/* Devices of one group of a cluster that are equally fast. */
typedef struct ms_device_kind {
    /* the cluster file whose device, node and network they have; NULL: the cluster's own */
    const struct ms_cluster *like;
    int group; /* number of the group, in the order of the file */
    /* speed of kernels, and bandwidth of links, in slow nodes / as listed; otherwise 1 */
    double compute_frac, link_frac;
} ms_device_kind;

/* Consecutive GPUs of one kind. */
typedef struct ms_kind_range {
    long num_gpus; /* LONG_MAX: all that follow */
    int kind;
} ms_kind_range;

typedef struct ms_cluster {
    const char *name;
    const char *description;
    const char *source; /* where the numbers are from, with date */
    /* "infiniband", "roce", "efa", "ethernet", "none": selects the profile's NIC costs */
    const char *network;
    ms_device device;
    ms_host_link host;
    long gpus_per_node;
    long max_gpus; /* largest job that the cluster holds; 0: not stated */
    int num_levels;
    ms_level levels[MS_MAX_LEVELS]; /* levels, innermost first */
    double usd_per_gpu_hour;        /* price; NaN: unknown */
    /* kinds of devices, if they are not all alike; `device` and `levels` are then what
     * all devices have at least, but for its profile and rates: those of kind 0 */
    int num_kinds; /* 0: all devices are alike */
    const ms_device_kind *kinds;
    int num_ranges;
    const ms_kind_range *ranges; /* kinds of the GPUs, in the order of the groups */
    const ms_level *between;     /* network between groups; NULL: one group */
    const char *slowed_by; /* text of ms_cluster_slow_down_by; NULL: it was not called */
} ms_cluster;

/* Loads a cluster by name, alias ("h100") or path into cx->arena. MS_EINPUT for unknown
 * names and wrong files, MS_EIO for unreadable ones. */
ms_status ms_cluster_load(ms_ctx *cx, const char *name_or_path, const ms_cluster **out);
/* Reads a cluster from a JSON object. MS_EINPUT with all errors recorded. */
ms_status ms_cluster_read(ms_ctx *cx, ms_jval root, ms_cluster *out);
/* Checks the nesting, topology and rails of levels, and the node, of a cluster that was
 * changed. MS_EINPUT. */
ms_status ms_cluster_check_levels(ms_ctx *cx, const ms_cluster *cluster);
void ms_cluster_print(FILE *out, const ms_cluster *cluster);
void ms_cluster_write_json(ms_jout *out, const ms_cluster *cluster);
/* Lists a cluster file's numbers by path: "device.hbm", "levels.nvlink.bandwidth". */
void ms_cluster_figures(const ms_cluster *cluster, ms_figures *list);
/* The names of all clusters in configs/clusters/, sorted. */
ms_status ms_cluster_names(ms_ctx *cx, const char *const **names, int *num_names);

#endif
