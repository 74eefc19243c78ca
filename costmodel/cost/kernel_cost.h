/* Time of one kernel on a device, from its shape: roofline with tile and wave
 * quantisation. All cost laws return seconds; coefficients come from the profile. */
#ifndef MS_COSTMODEL_COST_KERNEL_COST_H
#define MS_COSTMODEL_COST_KERNEL_COST_H

#include "costmodel/profile/profile.h"
#include "costmodel/profile/stack.h"
#include "costmodel/tensor/kernel_shape.h"

/* Coefficients of kernels, resolved once for a cluster, profile, stack and data type. */
typedef struct ms_pricer {
    const ms_device *device;
    const ms_profile *profile;
    const ms_stack *stack;
    ms_dtype compute;
    double gemm_flop_per_s;      /* peak * efficiency * sustained */
    double gemm_hbm_bytes_per_s; /* listed * gemm.hbm_frac */
    /* casts in tables of measured kernels: listed * gemm.quantise; 0: free */
    double quantise_bytes_per_s;
    double hbm_bytes_per_s; /* listed * hbm_frac */
    /* sustained rate within the power limit, head dim >= 128, endless sequences */
    double attention_forward_flop_per_s;
    double attention_backward_flop_per_s;
    double attention_small_head_frac, attention_half_sequence;
    double attention_overhead_s;
    bool attention_fused;
    bool wide_domain;            /* more than 8 GPUs share the innermost domain */
    bool attention_one_head_dim; /* the kernel pads values to the width of keys */
    /* measured over fitted seconds; NULL if this compute type was not measured */
    const ms_residuals *products;     /* keys: m, n, k */
    const ms_residuals *attention[2]; /* keys: FLOP, key tokens, head dim */
} ms_pricer;

/* FLOP per joule of products in a type: the profile's for 16 bits, times its gain per
 * halving of the bits; 0: power does not limit. [2.1] of docs/formulas. */
double ms_flop_per_joule(const ms_profile *profile, ms_dtype compute);

/* Rate of large products in training: the lower of isolated kernels' rate and the power
 * limit's, tdp_w * `flop_per_joule` (0: no limit). [2.1] of docs/formulas. */
double ms_gemm_flop_per_s(const ms_device *device, const ms_gemm_profile *gemm,
                          double flop_per_joule, ms_dtype compute);

/* Makes a pricer. MS_EINPUT if device or profile lacks `compute` or the network. */
ms_status ms_pricer_make(ms_ctx *cx, const ms_cluster *cluster, const ms_profile *profile,
                         const ms_stack *stack, ms_dtype compute, ms_pricer *out);

/* Seconds of matrix products in one kernel:
 *   t = t0 + (X^4 + Y^4 + Z^4)^(1/4)
 *   X = min over tiles of (w ceil(v) + (1 - w) v) SMs 2 area (k + k0) loss / rate, v =
 *   tiles of the result / SMs
 *   Y = traffic / hbm,  Z = ck k;
 * times measured over fitted where products were measured. Operands are there in the
 * compute type. */
double ms_gemm_kernel_s(const ms_pricer *pricer, ms_gemm_shape shape);
/* Whether products cast their operands, which are stored in more bits than `compute`. */
bool ms_pricer_casts(const ms_pricer *pricer);
/* ms_gemm_kernel_s plus the cast of the first operand from 16 bits to fewer. */
double ms_gemm_s(const ms_pricer *pricer, ms_gemm_shape shape);
/* Seconds to cast a share of a product's first operand, limited by HBM traffic. */
double ms_cast_s(const ms_pricer *pricer, ms_gemm_shape shape, double share);
/* Seconds of a product with its cast, as tables of measured kernels have both, by
 * coefficients fitted to those (gemm.quantise, gemm.quantise_overhead). */
double ms_quantised_gemm_s(const ms_pricer *pricer, ms_gemm_shape shape);
/* The pricer for products in another type that the device has, without measurements. */
ms_pricer ms_pricer_in(const ms_pricer *pricer, ms_dtype compute);

/* Seconds of a kernel limited by HBM traffic. */
double ms_stream_s(const ms_pricer *pricer, double traffic_bytes);

/* The rate and overhead of one operation (ms_op); NULL if the profile has none. */
const ms_pointwise_profile *ms_pricer_pointwise(const ms_pricer *pricer, int op);
/* Seconds of a pointwise operation: overhead + traffic / rate; 0 without traffic. */
double ms_pointwise_s(const ms_pointwise_profile *pointwise, double traffic_bytes);

/* Seconds of the optimizer's pass: the stack's bytes through HBM, or by the profile's
 * rate of ADAM seven values in `compute` per parameter (reads of g, w, m, v; writes of w,
 * m, v). */
double ms_update_s(const ms_pricer *pricer, double num_params);

/* Attention forward or backward. Fused:
 *   t = t0 + max(flop p (1 + o^4)^(1/4) / (R x(d) s / (s + s0)), traffic / hbm),
 * p = 2 max(d, w) / (d + w) for values narrower than keys, forward of FlashAttention 2
 * and before only; o = SMs / blocks of 128 queries. Not fused:
 *   t = products / 0.7 + score_bytes score_elements / hbm
 * with two batched products over all pairs forward and four backward; query_rows must be
 * stated. [2.2] of docs/formulas. */
double ms_attention_s(const ms_pricer *pricer, ms_attention_shape shape);

/* Seconds of a scan: the longer of its HBM traffic, with the stack's loss beyond it, and
 * its products at the rate of large ones in 16 bits; launches count for the host. [2.2.2]
 * of docs/formulas. */
double ms_scan_s(const ms_pricer *pricer, ms_scan_shape shape);

/* Layer time, at least the host's time to launch its kernels. [2.5] of docs/formulas. */
double ms_with_host_s(double gpu_s, double host_s);

#endif
