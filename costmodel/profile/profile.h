/* Cost coefficients of a device and of networks, each with provenance. Loaded from
 * configs/profiles/<name>.json. The cost laws are in costmodel/cost. */
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

/* Bounds of a measured rate divided by the listed rate. */
#define MS_LEAST_RATE_FRAC 0.001
#define MS_MOST_RATE_FRAC  20.0

/* One coefficient and its origin. */
typedef struct ms_coefficient {
    double value;
    ms_provenance from;
    const char *source;
} ms_coefficient;

/* Coefficients of GEMMs of one data type. */
typedef struct ms_gemm_profile {
    ms_coefficient efficiency; /* e: share of peak of large isolated GEMMs */
    ms_coefficient k_half;     /* k0: depth K that takes as long as a kernel's prologue */
    ms_coefficient overhead_s; /* t0: launch and drain of one kernel */
    ms_coefficient
        hbm_frac; /* b: share of listed HBM rate for operands; 0: profile's hbm_frac */
    ms_coefficient depth_s; /* ck: seconds of one output tile per element of depth K */
    /* casts of operands to 8 bits and less, in the libraries of the measured GEMMs */
    ms_coefficient quantise_overhead_s;
    ms_coefficient quantise_frac;  /* casts' share of the listed HBM rate; 0: free */
    ms_coefficient sustained_frac; /* GEMM rate in training over that in isolation */
} ms_gemm_profile;

typedef enum ms_attention_kernel {
    MS_ATTENTION_UNFUSED,
    MS_ATTENTION_TRITON,
    MS_ATTENTION_FA2,
    MS_ATTENTION_CUDNN, /* cuDNN, or the vendor's library */
    MS_ATTENTION_FA3,
    MS_NUM_ATTENTION_KERNELS
} ms_attention_kernel;
/* "unfused" "triton" "fa2" "cudnn" "fa3", NULL */
extern const char *const ms_attention_kernel_names[];

typedef struct ms_attention_profile {
    /* rate at head dimension >= 128, long sequences, causal FLOP; NaN: no such kernel */
    ms_coefficient forward_flop_per_s;
    ms_coefficient backward_flop_per_s;
    ms_coefficient small_head_frac; /* rate at head dimension 64 relative to 128 */
    ms_coefficient half_sequence;   /* s0: sequence length with half of the rate */
    ms_coefficient sustained_frac;
    ms_coefficient overhead_s; /* overhead of one attention kernel; value NaN: none */
} ms_attention_profile;

/* Kernels of one pointwise operation: t = overhead + traffic / rate. */
typedef struct ms_pointwise_profile {
    ms_coefficient bytes_per_s; /* rate of bytes read and written; NaN: unknown */
    ms_coefficient overhead_s;
} ms_pointwise_profile;

/* A network of groups that span several domains of the innermost level. */
typedef struct ms_network_profile {
    const char *name;
    ms_coefficient base_s;         /* a0: latency of a collective over several nodes */
    ms_coefficient step_s;         /* ring or tree step across nodes, small messages */
    ms_coefficient rank_step_s;    /* least time of any ring step, inside nodes too */
    ms_coefficient bandwidth_frac; /* share of the NICs' list rate of large collectives */
    ms_coefficient send_frac;      /* bandwidth_frac of one pair of ranks; 0: the same */
    ms_coefficient tree_frac;      /* trees' bandwidth relative to bandwidth_frac */
    ms_coefficient tree_serial; /* wait of a tree level for the previous: 0 none, 1 all */
    ms_coefficient ramp;        /* gamma of the sqrt(alpha beta) term, rings */
    ms_coefficient tree_ramp;   /* gamma of the sqrt(alpha beta) term, trees */
} ms_network_profile;

#define MS_MAX_NETWORKS 8

typedef struct ms_profile {
    const char *name;
    const char *source;
    /* efficiency.value NaN: no coefficients for that type */
    ms_gemm_profile gemm[MS_NUM_DTYPES];
    ms_coefficient tile_m, tile_n; /* largest output tile of one block */
    ms_coefficient wave_frac;      /* share of the last wave's idle time that is lost */
    ms_coefficient flop_per_joule; /* 16-bit GEMMs at the power limit; 0: no limit */
    ms_coefficient half_bits_gain; /* FLOP per joule with half the bits, relative; 0: 2 */
    /* rate of unfused attention's GEMMs relative to single ones of their shape; 0: 1 */
    ms_coefficient batched_products_frac;
    ms_coefficient
        small_tile_loss; /* extra time of tiles with twice the bytes per FLOP */
    ms_attention_profile attention[MS_NUM_ATTENTION_KERNELS];
    ms_coefficient hbm_frac; /* streaming kernels' share of the listed HBM rate */
    ms_coefficient launch_s; /* host time to launch one kernel */
    /* ---- collectives inside the innermost level ---- */
    ms_coefficient link_base_s; /* a0: latency of a collective in an innermost domain */
    ms_coefficient link_step_s; /* seconds per ring step in an innermost domain */
    ms_coefficient link_frac;   /* share of the listed link rate that is reached */
    ms_coefficient ramp;        /* gamma in alpha + beta + gamma sqrt(alpha beta) */
    ms_coefficient all_to_all_base_s, all_to_all_step_s, all_to_all_frac;
    /* all-reduce in the NVLink switch; value NaN: none */
    ms_coefficient nvls_base_s, nvls_bytes_per_s;
    ms_coefficient nvls_min_ranks;
    ms_coefficient p2p_base_s;
    int num_networks;
    ms_network_profile networks[MS_MAX_NETWORKS];
    /* ---- memory outside the framework's allocator ---- */
    ms_coefficient context_bytes;      /* CUDA context and loaded kernels */
    ms_coefficient communicator_bytes; /* NCCL buffers of one communicator */
    /* ---- calibrated profiles ---- */
    ms_pointwise_profile *pointwise; /* (MS_NUM_OPS): rates; NULL: hbm_frac for all */
    const ms_sweep *measured;        /* measured times; NULL: not calibrated */
} ms_profile;

/* ms_json_read for tables in which a MS_FIELD_ANY with low < high is an
 * ms_coefficient: {"value": ..., "from": "fitted", "source": "..."}. `value` is a
 * number for MS_UNIT_COUNT, otherwise a quantity string; null (NaN) if nullable. */
ms_status ms_coefficients_read(ms_ctx *cx, ms_jval object, const ms_field *fields,
                               void *out);

/* Loads or reads a profile. MS_EIO; MS_EINPUT: missing, unknown, out-of-range fields. */
ms_status ms_profile_load(ms_ctx *cx, const char *name, const ms_profile **out);
ms_status ms_profile_read(ms_ctx *cx, ms_jval root, ms_profile *out);
/* Writes an object that reads back as the profile; quantities with 6 digits. */
void ms_profile_write_json(ms_jout *out, const ms_profile *profile, const char *date);
/* Lists the profile's coefficients: "gemm.bf16.efficiency", "link.step"; data types,
 * kernels and networks that it lacks are left out. */
void ms_profile_figures(const ms_profile *profile, ms_figures *list);
/* The coefficients of a network by name; NULL if the profile has none. */
const ms_network_profile *ms_profile_network(const ms_profile *profile,
                                             const char *network);

#endif
