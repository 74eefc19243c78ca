/* Cost laws of kernels: matrix products, attention, streaming, scans, host launch. */
#include "costmodel/cost/kernel_cost.h"

#include "base/number.h"
#include "costmodel/cost/collective_cost.h"
#include "costmodel/tensor/op.h"

#include <assert.h>
#include <math.h>

/* Head dims between which the attention rate is interpolated (constant outside). */
static const double small_head_dim = 64.0;
static const double large_head_dim = 128.0;

/* The stack's attention kernel; if the profile has no rate for it, the next older that
 * has. Transformer Engine takes FlashAttention where cuDNN's backward is not
 * deterministic, on Blackwell (attention/dot_product_attention/utils.py,
 * get_attention_backend; from memory). */
static ms_attention_kernel choose_attention(const ms_device *device,
                                            const ms_profile *profile,
                                            const ms_stack *stack)
{
    int kernel = (int)stack->attention;
    if (kernel == MS_ATTENTION_CUDNN && stack->deterministic &&
        device->compute_capability >= 10.0)
        kernel = MS_ATTENTION_FA2;
    while (kernel > MS_ATTENTION_UNFUSED &&
           isnan(profile->attention[kernel].forward_flop_per_s.value))
        kernel--;
    return (ms_attention_kernel)kernel;
}

static const char *stated_peaks(ms_arena *arena, const ms_device *device)
{
    const char *text = "";
    for (int i = 0; i < MS_NUM_DTYPES; i++)
        if (!isnan(device->peak_flop_per_s[i]))
            text = ms_arena_printf(arena, "%s%s%s", text, text[0] == '\0' ? "" : ", ",
                                   ms_dtype_names[i]);
    return text;
}

static ms_status check_dtype(ms_ctx *cx, const ms_cluster *cluster,
                             const ms_profile *profile, ms_dtype compute)
{
    const char *dtype = ms_dtype_names[compute];
    if (isnan(cluster->device.peak_flop_per_s[compute])) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "device \"%s\" of cluster \"%s\" states no %s peak", cluster->device.name,
                cluster->name, dtype);
        const char *stated = stated_peaks(cx->arena, &cluster->device);
        if (stated[0] != '\0')
            ms_hint(cx, "choose a compute type whose peak it states: %s", stated);
        else
            ms_hint(cx, "add the peak of %s to the device of the cluster file", dtype);
        return MS_EINPUT;
    }
    if (isnan(profile->gemm[compute].efficiency.value)) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "profile \"%s\" has no coefficients for %s matrix products",
                profile->name, dtype);
        ms_hint(cx, "add gemm/%s to the profile, or choose another compute type", dtype);
        return MS_EINPUT;
    }
    if (profile->flop_per_joule.value > 0.0 && isnan(cluster->device.tdp_w)) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "device \"%s\" of cluster \"%s\" states no power limit, which profile "
                "\"%s\" needs",
                cluster->device.name, cluster->name, profile->name);
        ms_hint(cx, "add tdp_w (watts) to the device of the cluster file");
        return MS_EINPUT;
    }
    return MS_OK;
}

/* ---- measurements ---- */

static const ms_residuals *product_residuals(ms_arena *arena, const ms_sweep *measured,
                                             const ms_pricer *pricer)
{
    ms_residuals *residuals = ms_residuals_make(arena, measured->products.num);
    double bytes = ms_stored_bytes(pricer->compute);
    for (int i = 0; i < measured->products.num; i++) {
        const double *row = measured->products.values + i * MS_GEMM_COLUMNS;
        ms_gemm_shape shape = {row[0], row[1], row[2], row[3], bytes, bytes};
        ms_residuals_add(residuals, (const double[3]){row[1], row[2], row[3]},
                         row[4] / ms_gemm_kernel_s(pricer, shape));
    }
    return residuals;
}

static const ms_residuals *attention_residuals(ms_arena *arena, const ms_sweep_rows *rows,
                                               bool backward, const ms_pricer *pricer)
{
    ms_residuals *residuals = ms_residuals_make(arena, rows->num);
    for (int i = 0; i < rows->num; i++) {
        const double *row = rows->values + i * MS_ATTENTION_COLUMNS;
        ms_attention_shape shape = {.flop = row[0],
                                    .key_tokens = row[1],
                                    .head_dim = row[2],
                                    .score_elements = row[3],
                                    .traffic_bytes = row[4],
                                    .query_rows = row[3] / row[1],
                                    .backward = backward};
        ms_residuals_add(residuals, row, row[5] / ms_attention_s(pricer, shape));
    }
    return residuals;
}

static void attach_measured(ms_arena *arena, const ms_sweep *measured, ms_pricer *out)
{
    const ms_pricer fitted = *out;
    out->peak_flop_per_s =
        ms_max(out->peak_flop_per_s, ms_sweep_fastest_flop_per_s(measured));
    out->products = product_residuals(arena, measured, &fitted);
    /* residuals of attention only if fused: no unfused kernel was measured */
    for (int i = 0; i < 2 && fitted.attention_fused; i++)
        out->attention[i] =
            attention_residuals(arena, &measured->attention[i], i == 1, &fitted);
}

double ms_flop_per_joule(const ms_profile *profile, ms_dtype compute)
{
    double gain = profile->half_bits_gain.value;
    return profile->flop_per_joule.value *
           pow(gain > 0.0 ? gain : 2.0, log2(2.0 / ms_dtype_bytes(compute)));
}

double ms_gemm_flop_per_s(const ms_device *device, const ms_gemm_profile *gemm,
                          double flop_per_joule, ms_dtype compute)
{
    double isolated = device->peak_flop_per_s[compute] * gemm->efficiency.value *
                      gemm->sustained_frac.value;
    return flop_per_joule > 0.0 ? ms_min(isolated, device->tdp_w * flop_per_joule)
                                : isolated;
}

static void set_products(ms_pricer *pricer, ms_dtype compute)
{
    const ms_device *device = pricer->device;
    const ms_profile *profile = pricer->profile;
    const ms_gemm_profile *gemm = &profile->gemm[compute];
    pricer->compute = compute;
    pricer->peak_flop_per_s = device->peak_flop_per_s[compute];
    double hbm_bytes_per_s = device->hbm_bytes_per_s / pricer->slowdown;
    pricer->gemm_flop_per_s =
        ms_gemm_flop_per_s(device, gemm, ms_flop_per_joule(profile, compute), compute) /
        pricer->slowdown;
    pricer->gemm_hbm_bytes_per_s =
        hbm_bytes_per_s *
        (gemm->hbm_frac.value > 0.0 ? gemm->hbm_frac : profile->hbm_frac).value;
    pricer->quantize_bytes_per_s = hbm_bytes_per_s * gemm->quantize_frac.value;
}

/* Rate of attention in the compute type / the profile's, which is of another type: the
 * ratio of the device's peaks where the compute type has more bits. */
static double attention_type_frac(const ms_pricer *pricer)
{
    const double *peaks = pricer->device->peak_flop_per_s;
    double rated = peaks[ms_profile_attention_type(pricer->profile, pricer->device)];
    if (ms_dtype_bytes(pricer->compute) <= 2.0 || !(rated > 0.0))
        return 1.0;
    return ms_min(peaks[pricer->compute] / rated, 1.0);
}

/* Sets attention's FLOP/s: sustained, at most that of the power limit, in 16 bits or a
 * wider compute type. */
static void set_attention(ms_pricer *pricer, const ms_attention_profile *attention)
{
    ms_dtype type = ms_dtype_bytes(pricer->compute) > 2.0 ? pricer->compute : MS_BF16;
    double limit = pricer->device->tdp_w * ms_flop_per_joule(pricer->profile, type);
    double most = limit > 0.0 ? limit : HUGE_VAL;
    double sustained = attention->sustained_frac.value * attention_type_frac(pricer);
    pricer->attention_forward_flop_per_s =
        ms_min(attention->forward_flop_per_s.value * sustained, most) / pricer->slowdown;
    pricer->attention_backward_flop_per_s =
        ms_min(attention->backward_flop_per_s.value * sustained, most) / pricer->slowdown;
}

ms_pricer ms_pricer_in(const ms_pricer *pricer, ms_dtype compute)
{
    ms_pricer other = *pricer;
    bool is_known = pricer->device->peak_flop_per_s[compute] > 0.0 &&
                    !isnan(pricer->profile->gemm[compute].efficiency.value);
    if (compute == pricer->compute || !is_known)
        return other;
    set_products(&other, compute);
    other.products = NULL;
    return other;
}

ms_status ms_pricer_make(ms_ctx *cx, const ms_cluster *cluster, const ms_profile *profile,
                         const ms_stack *stack, ms_dtype compute, ms_pricer *out)
{
    MS_TRY(check_dtype(cx, cluster, profile, compute));
    MS_TRY(ms_network_check(cx, cluster, profile));
    ms_attention_kernel kernel = choose_attention(&cluster->device, profile, stack);
    const ms_attention_profile *attention = &profile->attention[kernel];
    long domain_gpus = cluster->num_levels > 0 ? ms_level_gpus(&cluster->levels[0]) : 1;
    double speed_frac = cluster->device.compute_frac;
    double slowdown = speed_frac > 0.0 ? 1.0 / speed_frac : 1.0;
    *out = (ms_pricer){
        .device = &cluster->device,
        .profile = profile,
        .stack = stack,
        .slowdown = slowdown,
        .hbm_bytes_per_s =
            cluster->device.hbm_bytes_per_s * profile->hbm_frac.value / slowdown,
        .attention_small_head_frac = attention->small_head_frac.value,
        .attention_half_sequence = attention->half_sequence.value,
        .attention_overhead_s = isnan(attention->overhead_s.value)
                                    ? 0.0
                                    : attention->overhead_s.value * slowdown,
        .attention_fused = kernel != MS_ATTENTION_UNFUSED,
        .wide_domain = domain_gpus == 0 || domain_gpus > 8,
        .attention_one_head_dim = kernel <= MS_ATTENTION_FA2,
        .attention_batch_first =
            kernel != MS_ATTENTION_UNFUSED && kernel != MS_ATTENTION_CUDNN,
    };
    set_products(out, compute);
    set_attention(out, attention);
    if (profile->measured != NULL && profile->measured->dtype == (int)compute)
        attach_measured(cx->arena, profile->measured, out);
    return MS_OK;
}

/* Tile sizes of a GEMM: `of_m`, `of_n` times the profile's tile_m, tile_n; `turned`: m
 * and n exchanged. For tile_m x tile_n = 128 x 256 also 256 x 128, 128 x 128, 64 x 64. */
typedef struct tile_choice {
    bool turned;
    double of_m, of_n;
} tile_choice;
static const tile_choice tile_choices[] = {
    {false, 1.0, 1.0}, {true, 1.0, 1.0}, {false, 1.0, 0.5}, {false, 0.5, 0.25}};

/* Share of the time to move a GEMM's result bytes beyond 16 bits per element (fp32 sums)
 * that compute does not hide. */
static const double unhidden_result_frac = 0.5;

static double tiled_flop(const ms_pricer *pricer, const ms_gemm_shape *shape,
                         const tile_choice *choice)
{
    const ms_profile *profile = pricer->profile;
    double largest_m = profile->tile_m.value, largest_n = profile->tile_n.value;
    double m = ms_max(choice->turned ? largest_n : largest_m * choice->of_m, 1.0);
    double n = ms_max(choice->turned ? largest_m : largest_n * choice->of_n, 1.0);
    double sms = (double)pricer->device->num_sms;
    double waves = shape->batch * ceil(shape->m / m) * ceil(shape->n / n) / sms;
    double lost = profile->wave_frac.value * (ceil(waves) - waves);
    /* operand elements loaded per FLOP, relative to the largest tile */
    double traffic =
        (1.0 / m + 1.0 / n) * largest_m * largest_n / (largest_m + largest_n);
    double depth = shape->k + pricer->profile->gemm[pricer->compute].k_half.value;
    return (waves + lost) * sms * 2.0 * m * n * depth *
           (1.0 + profile->small_tile_loss.value * (traffic - 1.0));
}

static double fitted_product_s(const ms_pricer *pricer, const ms_gemm_shape *shape)
{
    const ms_gemm_profile *gemm = &pricer->profile->gemm[pricer->compute];
    double flop = tiled_flop(pricer, shape, &tile_choices[0]);
    for (size_t i = 1; i < sizeof tile_choices / sizeof *tile_choices; i++)
        flop = ms_min(flop, tiled_flop(pricer, shape, &tile_choices[i]));
    double results = shape->batch * shape->m * shape->n;
    double wider_bytes =
        ms_max(shape->result_bytes - ms_max(shape->element_bytes, 2.0), 0.0);
    double compute_s = flop / pricer->gemm_flop_per_s + unhidden_result_frac *
                                                            wider_bytes * results /
                                                            pricer->gemm_hbm_bytes_per_s;
    double operand_bytes = /* operands below 16 bits were cast before */
        ms_min(shape->element_bytes, ms_dtype_bytes(pricer->compute));
    double traffic_bytes =
        shape->batch * operand_bytes * shape->k * (shape->m + shape->n) +
        shape->result_bytes * results;
    double x = compute_s * compute_s;
    double y = traffic_bytes / pricer->gemm_hbm_bytes_per_s;
    double z = gemm->depth_s.value * pricer->slowdown * shape->k;
    y *= y;
    z *= z;
    return gemm->overhead_s.value * pricer->slowdown + sqrt(sqrt(x * x + y * y + z * z));
}

double ms_gemm_kernel_s(const ms_pricer *pricer, ms_gemm_shape shape)
{
    if (shape.batch <= 0.0 || shape.m <= 0.0 || shape.n <= 0.0 || shape.k <= 0.0)
        return 0.0;
    double seconds = fitted_product_s(pricer, &shape);
    if (pricer->products == NULL)
        return seconds;
    seconds *= ms_residuals_ratio(pricer->products,
                                  (const double[3]){shape.m, shape.n, shape.k});
    double flop = 2.0 * shape.batch * shape.m * shape.n * shape.k;
    return ms_max(seconds, flop / pricer->peak_flop_per_s);
}

/* HBM bytes of the cast of a GEMM's first operand from 16 bits to the compute type. */
static double cast_bytes(const ms_pricer *pricer, ms_gemm_shape shape)
{
    return shape.batch * shape.m * shape.k * (2.0 + ms_dtype_bytes(pricer->compute));
}

bool ms_pricer_casts(const ms_pricer *pricer)
{
    return ms_dtype_bytes(pricer->compute) < ms_stored_bytes(pricer->compute);
}

double ms_cast_s(const ms_pricer *pricer, ms_gemm_shape shape, double share)
{
    return ms_pricer_casts(pricer)
               ? ms_stream_s(pricer, share * cast_bytes(pricer, shape))
               : 0.0;
}

double ms_gemm_s(const ms_pricer *pricer, ms_gemm_shape shape)
{
    double seconds = ms_gemm_kernel_s(pricer, shape);
    return seconds > 0.0 ? seconds + ms_cast_s(pricer, shape, 1.0) : seconds;
}

double ms_quantized_gemm_s(const ms_pricer *pricer, ms_gemm_shape shape)
{
    double seconds = ms_gemm_kernel_s(pricer, shape);
    if (seconds <= 0.0 || pricer->quantize_bytes_per_s <= 0.0)
        return seconds;
    return seconds +
           pricer->profile->gemm[pricer->compute].quantize_overhead_s.value *
               pricer->slowdown +
           cast_bytes(pricer, shape) / pricer->quantize_bytes_per_s;
}

double ms_stream_s(const ms_pricer *pricer, double traffic_bytes)
{
    return traffic_bytes / pricer->hbm_bytes_per_s;
}

const ms_pointwise_profile *ms_pricer_pointwise(const ms_pricer *pricer, int op)
{
    const ms_pointwise_profile *all = pricer->profile->pointwise;
    return all == NULL || isnan(all[op].bytes_per_s.value) ? NULL : &all[op];
}

double ms_pointwise_s(const ms_pointwise_profile *pointwise, double traffic_bytes)
{
    if (traffic_bytes <= 0.0)
        return 0.0;
    return pointwise->overhead_s.value + traffic_bytes / pointwise->bytes_per_s.value;
}

double ms_update_s(const ms_pricer *pricer, double num_params)
{
    const ms_pointwise_profile *adam = ms_pricer_pointwise(pricer, MS_OP_ADAM);
    if (adam != NULL)
        return pricer->slowdown *
               ms_pointwise_s(adam, 7.0 * ms_stored_bytes(pricer->compute) * num_params);
    return ms_stream_s(pricer, num_params * pricer->stack->optimizer_bytes.value);
}

/* Attention's FLOP rate relative to that with head dim 128 and endless sequences. */
static double attention_shape_frac(const ms_pricer *pricer, ms_attention_shape shape)
{
    double above = (shape.head_dim - small_head_dim) / (large_head_dim - small_head_dim);
    double small = pricer->attention_small_head_frac;
    double head_frac = small + (1.0 - small) * ms_min(ms_max(above, 0.0), 1.0);
    return head_frac * shape.key_tokens /
           (shape.key_tokens + pricer->attention_half_sequence);
}

/* Factor on attention's time for idle multiprocessors: fewer blocks of 128 queries (as in
 * FlashAttention 2, Dao 2023, section 3.3) than multiprocessors leave some idle. */
static double attention_idle_factor(const ms_pricer *pricer, ms_attention_shape shape)
{
    const double block_rows = 128.0;
    if (shape.query_rows <= 0.0 || pricer->device->num_sms <= 1)
        return 1.0;
    double idle = (double)pricer->device->num_sms * block_rows / shape.query_rows;
    idle *= idle;
    return sqrt(sqrt(1.0 + idle * idle));
}

/* Factor on attention's time if key and value widths differ: kernels with one head dim
 * pad the narrower; other kernels lose as much in backward, by smaller tiles. */
static double attention_padding_factor(const ms_pricer *pricer, ms_attention_shape shape)
{
    double keys = shape.head_dim, values = shape.value_dim;
    if (values <= 0.0 || !(pricer->attention_one_head_dim || shape.backward))
        return 1.0;
    return 2.0 * ms_max(keys, values) / (keys + values);
}

/* Seconds of unfused attention: a kernel per GEMM and per pass over the scores in HBM. */
static double unfused_attention_s(const ms_pricer *pricer, ms_attention_shape shape)
{
    double batch = ms_max(shape.batch, 1.0), bytes = ms_stored_bytes(pricer->compute);
    double keys = shape.score_elements / shape.query_rows;
    double queries = shape.query_rows / batch;
    double d = shape.head_dim, w = shape.value_dim > 0.0 ? shape.value_dim : d;
    const ms_gemm_shape forward[] = {{batch, queries, keys, d, bytes, bytes},
                                     {batch, queries, w, keys, bytes, bytes}};
    const ms_gemm_shape backward[] = {{batch, queries, keys, w, bytes, bytes},
                                      {batch, keys, w, queries, bytes, bytes},
                                      {batch, queries, d, keys, bytes, bytes},
                                      {batch, keys, d, queries, bytes, bytes}};
    double products_s = 0.0;
    for (int i = 0; i < (shape.backward ? 4 : 2); i++)
        products_s += ms_gemm_kernel_s(pricer, (shape.backward ? backward : forward)[i]);
    double batched_frac = pricer->profile->batched_products_frac.value; /* 0: not known */
    return products_s / (batched_frac > 0.0 ? batched_frac : 1.0) +
           ms_stream_s(pricer, shape.score_bytes * shape.score_elements);
}

static double attention_fitted_s(const ms_pricer *pricer, ms_attention_shape shape)
{
    if (!pricer->attention_fused)
        return unfused_attention_s(pricer, shape);
    double rate = shape.backward ? pricer->attention_backward_flop_per_s
                                 : pricer->attention_forward_flop_per_s;
    double compute_s = shape.flop / (rate * attention_shape_frac(pricer, shape));
    return ms_max(compute_s * attention_padding_factor(pricer, shape) *
                      attention_idle_factor(pricer, shape),
                  ms_stream_s(pricer, shape.traffic_bytes));
}

double ms_attention_s(const ms_pricer *pricer, ms_attention_shape shape)
{
    bool is_none = shape.flop <= 0.0 || shape.key_tokens <= 0.0;
    if (is_none || (!pricer->attention_fused && shape.query_rows <= 0.0))
        return 0.0;
    double seconds = attention_fitted_s(pricer, shape) + pricer->attention_overhead_s;
    const ms_residuals *residuals = pricer->attention[shape.backward];
    if (residuals == NULL)
        return seconds;
    seconds *= ms_residuals_ratio(
        residuals, (const double[3]){shape.flop, shape.key_tokens, shape.head_dim});
    return ms_max(seconds, shape.flop / pricer->peak_flop_per_s);
}

double ms_with_host_s(double gpu_s, double host_s)
{
    assert(gpu_s >= 0.0 && host_s >= 0.0);
    return ms_max(gpu_s, host_s);
}

double ms_scan_s(const ms_pricer *pricer, ms_scan_shape shape)
{
    const ms_pricer plain =
        ms_dtype_bytes(pricer->compute) > 2.0 ? *pricer : ms_pricer_in(pricer, MS_BF16);
    double loss = 1.0 + pricer->stack->scan_loss.value;
    return ms_max(loss * ms_stream_s(pricer, ms_scan_traffic_bytes(shape)),
                  ms_scan_flop(shape) / plain.gemm_flop_per_s);
}
