/* Seconds of one kernel on a device, from its shape: roofline with tile and wave
 * quantization; coefficients come from the profile. */
#ifndef MS_COSTMODEL_COST_KERNEL_COST_H
#define MS_COSTMODEL_COST_KERNEL_COST_H

#include "costmodel/profile/profile.h"
#include "costmodel/profile/stack.h"
#include "costmodel/tensor/kernel_shape.h"

/* Kernel rates and overheads for one device, profile, stack and compute type. */
typedef struct ms_pricer {
    const ms_device *device;
    const ms_profile *profile;
    const ms_stack *stack;
    ms_dtype compute;
    /* listed peak of `compute`, or that of a faster measured kernel */
    double peak_flop_per_s;
    /* seconds of a kernel / those at the device's listed speed; above 1 in slow nodes:
     * all rates below are lower and overheads larger by it */
    double slowdown;
    double gemm_flop_per_s; /* peak * efficiency * sustained, within the power limit */
    double gemm_hbm_bytes_per_s; /* listed HBM rate * gemm.hbm_frac */
    /* HBM rate of casts in the measured kernels' libraries; 0: casts take no time */
    double quantize_bytes_per_s;
    double hbm_bytes_per_s; /* listed HBM rate * hbm_frac */
    /* sustained FLOP/s, within the power limit, at head dim >= 128, endless sequences; in
     * types of more bits than those of the profile less, as the types' peaks are */
    double attention_forward_flop_per_s;
    double attention_backward_flop_per_s;
    double attention_small_head_frac, attention_half_sequence;
    double attention_overhead_s;
    bool attention_fused;
    bool wide_domain;            /* more than 8 GPUs share the innermost domain */
    bool attention_one_head_dim; /* attention pads values to the width of keys */
    bool attention_batch_first;  /* FlashAttention: sequences, then their tokens */
    /* measured / fitted seconds by GEMM size m, n, k; NULL: type not measured */
    const ms_residuals *products;
    /* [backward] measured / fitted seconds by FLOP, key tokens, head dim; NULL:
     * unknown */
    const ms_residuals *attention[2];
} ms_pricer;

/* FLOP per joule of GEMMs in a data type: the profile's value for 16 bits, times
 * half_bits_gain per halving of the bits; 0: no power limit. [2.1] of docs/formulas. */
double ms_flop_per_joule(const ms_profile *profile, ms_dtype compute);

/* FLOP/s of large GEMMs in training: the rate of isolated kernels, or if lower that of
 * the power limit, tdp_w * `flop_per_joule` (0: no limit). [2.1] of docs/formulas. */
double ms_gemm_flop_per_s(const ms_device *device, const ms_gemm_profile *gemm,
                          double flop_per_joule, ms_dtype compute);

/* Makes a pricer. MS_EINPUT if the device lacks a peak for `compute` or a needed power
 * limit, or the profile lacks coefficients for `compute` or the cluster's network. */
ms_status ms_pricer_make(ms_ctx *cx, const ms_cluster *cluster, const ms_profile *profile,
                         const ms_stack *stack, ms_dtype compute, ms_pricer *out);

/* Seconds of a batch of GEMMs in one kernel (coefficients t0, k0, ck, w: ms_profile):
 *   t = t0 + (X^4 + Y^4 + Z^4)^(1/4)
 *   X = min over tile sizes of (w ceil(v) + (1 - w) v) SMs 2 area (k + k0) loss / rate,
 *       v = tiles of the result / SMs, area = m n of a tile, loss by small tiles >= 1
 *   Y = HBM traffic / HBM rate,  Z = ck k;
 * where GEMMs were measured, t times measured / fitted seconds, at least FLOP / peak. Operands are already in
 * the compute type. */
double ms_gemm_kernel_s(const ms_pricer *pricer, ms_gemm_shape shape);
/* Whether GEMM operands are stored in more bits than `compute`, and so are cast. */
bool ms_pricer_casts(const ms_pricer *pricer);
/* Seconds of a GEMM kernel, with the cast of its first operand from 16 bits if needed. */
double ms_gemm_s(const ms_pricer *pricer, ms_gemm_shape shape);
/* Seconds to cast a share of a GEMM's first operand, limited by HBM traffic. */
double ms_cast_s(const ms_pricer *pricer, ms_gemm_shape shape, double share);
/* Seconds of a GEMM and its cast as measured kernels have both in one time, by the
 * coefficients fitted to them (gemm.quantize, gemm.quantize_overhead). */
double ms_quantized_gemm_s(const ms_pricer *pricer, ms_gemm_shape shape);
/* The pricer with GEMM rates of another data type (unchanged if that has no rates). */
ms_pricer ms_pricer_in(const ms_pricer *pricer, ms_dtype compute);

/* Seconds of a kernel limited by HBM traffic. */
double ms_stream_s(const ms_pricer *pricer, double traffic_bytes);

/* Rate and overhead of a pointwise operation (ms_op); NULL if the profile has none. */
const ms_pointwise_profile *ms_pricer_pointwise(const ms_pricer *pricer, int op);
/* Seconds of a pointwise operation: overhead + traffic / rate; 0 without traffic. */
double ms_pointwise_s(const ms_pointwise_profile *pointwise, double traffic_bytes);

/* Seconds of the optimizer update: the stack's optimizer_bytes through HBM or, if the
 * profile rates ADAM, 7 values per parameter (reads g, w, m, v; writes w, m, v). */
double ms_update_s(const ms_pricer *pricer, double num_params);

/* Seconds of attention forward or backward: head dim d, value width w, s keys. Fused:
 *   t = t0 + max(flop p (1 + o^4)^(1/4) / (rate x(d) s / (s + s0)), traffic / hbm)
 * with p = 2 max(d, w) / (d + w) in backward and in kernels that pad values (up to
 * FlashAttention 2), else 1; o = SMs / blocks of 128 queries. Not fused:
 *   t = t0 + GEMMs / batched_products_frac + score_bytes score_elements / hbm
 * with batched GEMMs over all query-key pairs, two forward and four backward; query_rows
 * must be stated. [2.2] of docs/formulas. */
double ms_attention_s(const ms_pricer *pricer, ms_attention_shape shape);

/* Seconds of a Mamba scan: its HBM traffic times 1 + scan_loss of the stack, or if longer
 * its GEMMs at the 16-bit rate, or that of a wider compute type. [2.2.2] of docs/formulas. */
double ms_scan_s(const ms_pricer *pricer, ms_scan_shape shape);

/* Layer seconds, at least the host's to launch its kernels. [2.5] of docs/formulas. */
double ms_with_host_s(double gpu_s, double host_s);

#endif
