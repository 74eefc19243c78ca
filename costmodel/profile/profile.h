/* Folder costmodel/profile: coefficients of devices, networks and stacks with their
 * provenance; no formulas.
 *
 * Cost coefficients of a device and of networks, each with provenance, loaded from
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

/* Limits of a measured rate divided by the listed rate; above 1 only in a calibrated
 * profile, whose listed rates may be assumed, or exceeded by caches. */
#define MS_LEAST_RATE_FRAC 0.001
#define MS_MOST_RATE_FRAC  20.0

/* One cost coefficient and its origin. */
typedef struct ms_coefficient {
    double value;
    ms_provenance from;
    const char *source;
} ms_coefficient;

/* Coefficients of GEMMs of one data type. */
typedef struct ms_gemm_profile {
    ms_coefficient efficiency; /* e: large isolated GEMMs' share of peak FLOP/s */
    ms_coefficient k_half;     /* k0: depth K that the prologue adds to every GEMM */
    ms_coefficient overhead_s; /* t0: launch and drain of one GEMM kernel */
    ms_coefficient
        hbm_frac; /* b: GEMMs' HBM rate / listed rate; 0: hbm_frac of ms_profile */
    ms_coefficient depth_s; /* ck: seconds that an output tile takes per unit of K */
    /* fixed seconds of a GEMM's cast to 8 bits or less (ms_quantized_gemm_s) */
    ms_coefficient quantize_overhead_s;
    ms_coefficient quantize_frac;  /* casts' HBM rate / listed rate; 0: casts are free */
    ms_coefficient sustained_frac; /* GEMM rate in training, relative to isolation */
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
    /* FLOP/s, causal, at head dim >= 128 and long sequences; NaN: no such kernel */
    ms_coefficient forward_flop_per_s;
    ms_coefficient backward_flop_per_s;
    ms_coefficient small_head_frac; /* rate at head dim 64, divided by that at 128 */
    ms_coefficient half_sequence; /* s0: sequence length that reaches half of the rate */
    ms_coefficient sustained_frac;
    ms_coefficient overhead_s; /* fixed seconds of this kernel; NaN: no such kernel */
} ms_attention_profile;

/* Coefficients of one pointwise operation: time = overhead + HBM bytes / rate. */
typedef struct ms_pointwise_profile {
    ms_coefficient bytes_per_s; /* bytes read and written per second; NaN: unknown */
    ms_coefficient overhead_s;
} ms_pointwise_profile;

/* Coefficients of collectives over several domains (nodes) of one kind of network. */
typedef struct ms_network_profile {
    const char *name;
    ms_coefficient base_s;         /* a0: fixed latency of a collective over nodes */
    ms_coefficient step_s;         /* seconds of a ring or tree step across nodes */
    ms_coefficient rank_step_s;    /* least seconds of any ring step, inside nodes too */
    ms_coefficient bandwidth_frac; /* large collectives' share of the NICs' listed rate */
    ms_coefficient send_frac; /* pair's send rate / listed NIC rate; 0: bandwidth_frac */
    ms_coefficient tree_frac; /* trees over 3 or more nodes: factor on bandwidth_frac */
    ms_coefficient tree_serial; /* 0: tree levels overlap; 1: one after the other */
    ms_coefficient ramp;        /* factor of the sqrt(alpha beta) term in ring times */
    ms_coefficient tree_ramp;   /* factor of the sqrt(alpha beta) term in tree times */
} ms_network_profile;

#define MS_MAX_NETWORKS 8

typedef struct ms_profile {
    const char *name;
    const char *source;
    /* [ms_dtype] a NaN efficiency: the device lacks the type */
    ms_gemm_profile gemm[MS_NUM_DTYPES];
    ms_coefficient tile_m, tile_n; /* rows, columns of the largest GEMM output tile */
    ms_coefficient wave_frac; /* share of the last wave's idle SM time that is lost */
    ms_coefficient flop_per_joule; /* FLOP/J of 16-bit GEMMs; 0: power is no limit */
    ms_coefficient half_bits_gain; /* FLOP/J factor each time bits halve; 0: 2 */
    /* rate of batched GEMMs in unfused attention, divided by that of single ones; 0: 1 */
    ms_coefficient batched_products_frac;
    ms_coefficient
        small_tile_loss; /* relative extra time of tiles with twice the bytes per FLOP */
    ms_attention_profile attention[MS_NUM_ATTENTION_KERNELS];
    ms_coefficient hbm_frac; /* streaming kernels' share of the listed HBM rate */
    ms_coefficient launch_s; /* host time to launch one kernel */
    /* ---- collectives inside the innermost level ---- */
    ms_coefficient link_base_s; /* a0: fixed latency of a collective inside a domain */
    ms_coefficient link_step_s; /* seconds per ring step inside a domain */
    ms_coefficient link_frac;   /* large collectives' share of the listed link rate */
    ms_coefficient ramp;        /* factor of the sqrt(alpha beta) term of cost laws */
    ms_coefficient all_to_all_base_s, all_to_all_step_s, all_to_all_frac;
    /* latency and rate of all-reduce in the NVLink switch; NaN: none */
    ms_coefficient nvls_base_s, nvls_bytes_per_s;
    ms_coefficient nvls_min_ranks;
    ms_coefficient p2p_base_s;
    int num_networks;
    ms_network_profile networks[MS_MAX_NETWORKS];
    /* ---- memory outside the framework's allocator ---- */
    ms_coefficient context_bytes;      /* memory of CUDA context and loaded kernels */
    ms_coefficient communicator_bytes; /* memory of NCCL per communicator */
    /* ---- calibrated profiles ---- */
    ms_pointwise_profile *pointwise; /* [ms_op] coefficients; NULL: all at hbm_frac */
    const ms_sweep *measured;        /* tables of measured times; NULL: not calibrated */
} ms_profile;

/* Reads coefficients by a field table, as ms_json_read does other values: MS_FIELD_ANY
 * with low < high is a coefficient {"value": ..., "from": "fitted", "source": "..."};
 * value is a number (MS_UNIT_COUNT), a quantity string or, if nullable, null (NaN). */
ms_status ms_coefficients_read(ms_ctx *cx, ms_jval object, const ms_field *fields,
                               void *out);

/* Loads a profile by name. MS_EIO; MS_EINPUT: missing, unknown or out-of-range fields. */
ms_status ms_profile_load(ms_ctx *cx, const char *name, const ms_profile **out);
/* Loads a profile for the device of a cluster. MS_EINPUT also if a rate of the profile exceeds
 * what the cluster states: attention the dense peak of its type, all-reduces in the
 * switch what the links carry, which is twice their rate. Calibrated profiles may. */
ms_status ms_profile_load_for(ms_ctx *cx, const char *name, const ms_cluster *cluster,
                              const ms_profile **out);
ms_status ms_profile_read(ms_ctx *cx, ms_jval root, ms_profile *out);
/* The type of the profile's attention rates: the calibrated one, otherwise the first of
 * bf16, fp16, tf32, fp32 and fp64 whose peak the device states. */
ms_dtype ms_profile_attention_type(const ms_profile *profile, const ms_device *device);
/* Writes a profile as a JSON object that reads back; quantities with 6 digits. */
void ms_profile_write_json(ms_jout *out, const ms_profile *profile, const char *date);
/* Appends the profile's coefficients by name: "gemm.bf16.efficiency", "link.step"; data
 * types, kernels and networks that it lacks are left out. */
void ms_profile_figures(const ms_profile *profile, ms_figures *list);
/* Largest legal value of a coefficient of ms_profile_figures in a profile for the device
 * of a cluster: that of its field, and what ms_profile_load_for refuses; infinite:
 * no limit. */
double ms_profile_most(const ms_profile *profile, const ms_cluster *cluster,
                       const ms_figure *figure);
/* The profile's coefficients of a network by name; NULL if it has none. */
const ms_network_profile *ms_profile_network(const ms_profile *profile,
                                             const char *network);

#endif
