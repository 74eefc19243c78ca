/* Cost coefficients of a device and of networks, each with its provenance. Loaded from
 * configs/profiles/<name>.json. The laws that use them are in kernel_cost.h and
 * collective_cost.h. */
#ifndef MS_COSTMODEL_PROFILE_PROFILE_H
#define MS_COSTMODEL_PROFILE_PROFILE_H

#include "costmodel/profile/sweep.h"
#include "topo/cluster.h"

typedef enum ms_provenance {
    MS_SPEC,
    MS_MEASURED,
    MS_FITTED,
    MS_ASSUMED
} ms_provenance;
/* "spec" "measured" "fitted" "assumed", NULL */
extern const char *const ms_provenance_names[];

/* Bounds of measured over listed rates. */
#define MS_LEAST_RATE_FRAC 0.001
#define MS_MOST_RATE_FRAC  20.0

/* One coefficient and why we believe it. */
typedef struct ms_coefficient {
    double value;
    ms_provenance from;
    const char *source;
} ms_coefficient;

/* Matrix products of one data type: time law in kernel_cost.h. */
typedef struct ms_gemm_profile {
    /* e: fraction of peak that large products reach in isolation */
    ms_coefficient efficiency;
    ms_coefficient k_half;     /* k0: depth that costs as much as the prologue */
    ms_coefficient overhead_s; /* t0: launch and drain of one kernel */
    /* b: of the listed HBM rate that operands reach; 0: the profile's */
    ms_coefficient hbm_frac;
    ms_coefficient depth_s; /* ck: one block along one element of depth; 0: nothing */
    /* making operands of 8 bits and less from 16 bits in the libraries that measured
     * products are from */
    ms_coefficient quantise_overhead_s;
    /* of the listed HBM rate; 0: operands are made at no cost */
    ms_coefficient quantise_frac;
    /* rate under a training load, relative to isolated kernels */
    ms_coefficient sustained_frac;
} ms_gemm_profile;

typedef enum ms_attention_kernel {
    MS_ATTENTION_UNFUSED,
    MS_ATTENTION_TRITON,
    MS_ATTENTION_FA2,
    MS_ATTENTION_CUDNN, /* or the library of the device's maker */
    MS_ATTENTION_FA3,
    MS_NUM_ATTENTION_KERNELS
} ms_attention_kernel;
/* "unfused" "triton" "fa2" "cudnn" "fa3", NULL */
extern const char *const ms_attention_kernel_names[];

typedef struct ms_attention_profile {
    /* head dimension >= 128, long sequences, causal FLOP; value NaN: kernel not available
     * on this device */
    ms_coefficient forward_flop_per_s;
    ms_coefficient backward_flop_per_s;
    ms_coefficient small_head_frac; /* rate at head dimension 64 relative to 128 */
    /* s0: sequence length at which half of the rate is reached */
    ms_coefficient half_sequence;
    ms_coefficient sustained_frac;
    ms_coefficient overhead_s; /* of one kernel; value NaN: left out of the file, none */
} ms_attention_profile;

/* Kernels of one operation that is no product: t = overhead + traffic / rate. */
typedef struct ms_pointwise_profile {
    ms_coefficient bytes_per_s; /* of what it reads and writes once; value NaN: none */
    ms_coefficient overhead_s;
} ms_pointwise_profile;

/* One kind of network, used by groups that span more than one domain of the innermost
 * level. */
typedef struct ms_network_profile {
    const char *name;
    ms_coefficient base_s; /* a0: of a collective with more than one node */
    /* one step of a ring or tree that crosses nodes, small messages */
    ms_coefficient step_s;
    /* least time of any ring step, inside nodes too (pipelining in chunks); 0: none */
    ms_coefficient rank_step_s;
    /* reached of the NICs' list rate by large collectives: bus bandwidth */
    ms_coefficient bandwidth_frac;
    /* the same of one pair that sends and receives; value 0: left out of the file, as
     * bandwidth_frac */
    ms_coefficient send_frac;
    ms_coefficient tree_frac; /* tree's share of bandwidth_frac */
    /* part of a tree level's time for which the next waits: 0 pipelined, 1 stored and
     * forwarded; left out: 0 */
    ms_coefficient tree_serial;
    ms_coefficient ramp;      /* gamma of rings over this network */
    ms_coefficient tree_ramp; /* the same of trees; left out: 0 */
} ms_network_profile;

#define MS_MAX_NETWORKS 8

typedef struct ms_profile {
    const char *name;
    const char *source;
    /* efficiency.value NaN: no coefficients for that type */
    ms_gemm_profile gemm[MS_NUM_DTYPES];
    ms_coefficient tile_m, tile_n; /* largest output tile of one block */
    /* share of the multiprocessors' idle time in the last wave that is lost; 0: work
     * spreads evenly */
    ms_coefficient wave_frac;
    /* of products in 16 bits that keep a device at its power limit; 0: not limited by
     * power */
    ms_coefficient flop_per_joule;
    /* FLOP a joule of products in half the bits, relative; 0: left out, 2 */
    ms_coefficient half_bits_gain;
    /* rate of the products of attention without a fused kernel, of single ones of their
     * shape; 0: left out, 1 */
    ms_coefficient batched_products_frac;
    /* what a tile of twice the traffic per FLOP takes longer */
    ms_coefficient small_tile_loss;
    ms_attention_profile attention[MS_NUM_ATTENTION_KERNELS];
    ms_coefficient hbm_frac; /* of the listed HBM rate that streaming kernels reach */
    ms_coefficient launch_s; /* host time to launch one kernel */
    /* collectives inside the innermost level */
    ms_coefficient link_base_s; /* a0 */
    ms_coefficient link_step_s; /* per ring step */
    ms_coefficient link_frac;   /* of the listed link rate */
    ms_coefficient ramp;        /* gamma in alpha + beta + gamma sqrt(alpha beta) */
    ms_coefficient all_to_all_base_s, all_to_all_step_s, all_to_all_frac;
    /* in-switch all-reduce; value NaN: none */
    ms_coefficient nvls_base_s, nvls_bytes_per_s;
    ms_coefficient nvls_min_ranks;
    ms_coefficient p2p_base_s;
    int num_networks;
    ms_network_profile networks[MS_MAX_NETWORKS];
    /* memory outside the framework's allocator */
    ms_coefficient context_bytes;      /* CUDA context and loaded kernels */
    ms_coefficient communicator_bytes; /* NCCL buffers of one communicator */
    /* of calibrated profiles */
    /* (MS_NUM_OPS) by operation, in place of hbm_frac; NULL: none */
    ms_pointwise_profile *pointwise;
    const ms_sweep *measured; /* NULL: none */
} ms_profile;

/* Reads an object with a table as ms_json_read does, where a field of kind MS_FIELD_ANY
 * with low < high is a coefficient: {"value": ..., "from": "fitted", "source": "..."}
 * stored as ms_coefficient at its offset. `value` is a number for MS_UNIT_COUNT, a
 * quantity string otherwise, null (NaN) if nullable. */
ms_status ms_coefficients_read(ms_ctx *cx, ms_jval object, const ms_field *fields,
                               void *out);

ms_status ms_profile_load(ms_ctx *cx, const char *name, const ms_profile **out);
ms_status ms_profile_read(ms_ctx *cx, ms_jval root, ms_profile *out);
/* An object that reads back as the profile; quantities with 6 digits. */
void ms_profile_write_json(ms_jout *out, const ms_profile *profile, const char *date);
/* Its coefficients, by the tables that read them: "gemm.bf16.efficiency", "link.step",
 * "networks.infiniband.base"; of data types, kernels and networks only those that it
 * has. */
void ms_profile_figures(const ms_profile *profile, ms_figures *list);
/* The coefficients of the cluster's network; NULL when the profile has none for it. */
const ms_network_profile *ms_profile_network(const ms_profile *profile,
                                             const char *network);

#endif
