/* Time of one kernel on a device, from its shape: roofline with tile and wave quantisation.
 * All laws return seconds; coefficients come from the profile. */
#ifndef MS_COSTMODEL_KERNEL_COST_H
#define MS_COSTMODEL_KERNEL_COST_H

#include "costmodel/profile.h"
#include "costmodel/stack.h"

/* Everything kernels are priced with, resolved once for a cluster, profile, stack and data type. */
typedef struct ms_pricer {
    const ms_device *device;
    const ms_profile *profile;
    const ms_stack *stack;
    ms_dtype compute;
    double gemm_flop_per_s; /* peak * efficiency * sustained */
    double hbm_bytes_per_s; /* list * hbm_frac */
    double
        attention_forward_flop_per_s; /* sustained, head dimension >= 128, s -> infinity */
    double attention_backward_flop_per_s;
    double attention_small_head_frac, attention_half_sequence;
    double attention_overhead_s;
    bool attention_fused;
    /* of profiles with measurements of this compute type; NULL: none */
    const ms_residuals *products; /* by m, n, k */
    const ms_residuals
        *attention[2]; /* forward, backward: by FLOP, key tokens, head dim */
} ms_pricer;

/* MS_EINPUT when the device or the profile has no coefficients for `compute`, or the profile none for the network. */
ms_status ms_pricer_make(ms_ctx *cx, const ms_cluster *cluster, const ms_profile *profile,
                         const ms_stack *stack, ms_dtype compute, ms_pricer *out);

/* A batch of equal matrix products m x k by k x n with elements of `element_bytes`, and results of `result_bytes`:
 *   t = max(2 m n k (k + k0)/k / (rate q), traffic / hbm) + t0,   q = tiles / (waves * SMs),
 * tiles = batch ceil(m/tile_m) ceil(n/tile_n), waves = ceil(tiles / SMs); times measured over fitted where products were measured. */
typedef struct ms_gemm_shape {
    double batch, m, n, k;
    double element_bytes, result_bytes;
} ms_gemm_shape;
double ms_gemm_s(const ms_pricer *pricer, ms_gemm_shape shape);

/* A kernel limited by HBM traffic. */
double ms_stream_s(const ms_pricer *pricer, double traffic_bytes);

/* The rate and overhead of one operation (ms_op), where the profile has them; NULL otherwise. */
const ms_pointwise_profile *ms_pricer_pointwise(const ms_pricer *pricer, int op);
/* overhead + traffic / rate; 0 for no traffic. */
double ms_pointwise_s(const ms_pointwise_profile *pointwise, double traffic_bytes);

/* The optimizer's pass over `num_params`: the stack's bytes through HBM; where the profile has a rate of ADAM, gradient, weight and two moments read and
 * three of them written, in the compute type. */
double ms_update_s(const ms_pricer *pricer, double num_params);

/* Attention forward or backward. flop counts executed (causal) FLOP of this rank; key_tokens is the length of the
 * keys each query block walks; score_elements = batch * heads * queries * keys (unfused kernels move them through HBM, 12 B forward, 24 B backward). */
typedef struct ms_attention_shape {
    double flop, key_tokens, head_dim, score_elements, traffic_bytes;
    bool backward;
} ms_attention_shape;
double ms_attention_s(const ms_pricer *pricer, ms_attention_shape shape);

/* Layer time when the host must launch its kernels: (gpu^q + host^q)^(1/q), q = 6. */
double ms_with_host_s(double gpu_s, double host_s);

#endif
