/* Conditions under which kernels were measured: data, order, warm-up. */
#include "costmodel/calibrate/calibration_priv.h"

#include "costmodel/calibrate/statistics.h"

#include <math.h>

static bool is_condition(const ms_sample *sample)
{
    return sample->kind == MS_SAMPLE_ZERO_GEMM || sample->kind == MS_SAMPLE_WARM_UP;
}

/* Time of a GEMM with zeros over that of the launch's GEMM with normal data; NaN: none. */
static double ratio_of_zeros(const ms_samples *samples, const ms_sample *zeros)
{
    ms_sample normal = *zeros;
    normal.kind = MS_SAMPLE_GEMM;
    for (int i = 0; i < samples->num; i++)
        if (samples->items[i].launch == zeros->launch &&
            ms_samples_alike(&samples->items[i], &normal))
            return zeros->seconds / samples->items[i].seconds;
    return NAN;
}

static double median_of(double *values, int num)
{
    return num > 0 ? ms_quantile(values, num, 0.5) : (double)NAN;
}

static const char *text_of(ms_arena *arena, const ms_calibration *c)
{
    const char *text = "signed normal operands, cases of a round in random order";
    if (!isnan(c->warm_up_s))
        text = ms_arena_printf(arena, "%s, warm-up of %.3g s until times were %s", text,
                               c->warm_up_s, c->steady ? "steady" : "nearly steady");
    if (!isnan(c->zero_ratio))
        text = ms_arena_printf(arena,
                               "%s; the largest GEMM takes %.3g of its time with zeros",
                               text, c->zero_ratio);
    return text;
}

void ms_calibration_take_conditions(ms_ctx *cx, ms_calibration_input *in,
                                    ms_calibration *out)
{
    const ms_samples *all = in->samples;
    ms_samples *fitted = MS_NEW(cx->arena, ms_samples);
    double *ratios = MS_NEW_ARRAY(cx->arena, all->num + 1, double);
    double *warm_ups_s = MS_NEW_ARRAY(cx->arena, all->num + 1, double);
    int num_ratios = 0, num_warm_ups = 0, num_steady = 0;
    for (int i = 0; i < all->num; i++) {
        const ms_sample *sample = &all->items[i];
        if (!is_condition(sample))
            ms_samples_add(cx->arena, fitted, sample);
        if (sample->kind == MS_SAMPLE_ZERO_GEMM)
            ratios[num_ratios++] = ratio_of_zeros(all, sample);
        if (sample->kind == MS_SAMPLE_WARM_UP) {
            warm_ups_s[num_warm_ups++] = sample->seconds;
            num_steady += sample->size[0] > 0.0;
        }
    }
    in->samples = fitted;
    out->steady = num_warm_ups > 0 && num_steady == num_warm_ups;
    out->zero_ratio = median_of(ratios, num_ratios);
    out->warm_up_s = median_of(warm_ups_s, num_warm_ups);
    in->machine.conditions = text_of(cx->arena, out);
}
