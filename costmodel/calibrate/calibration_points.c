/* Selects measured samples for a fit and converts each to a point (a row of numbers). */
#include "costmodel/calibrate/calibration_priv.h"

bool ms_sample_matches(const ms_sample *sample, ms_sample_filter filter)
{
    return (filter.kinds >> sample->kind & 1U) != 0 &&
           (filter.whats == 0 || (filter.whats >> sample->what & 1U) != 0);
}

bool ms_sample_is_attention(const ms_sample *sample)
{
    return sample->kind == MS_SAMPLE_ATTENTION ||
           sample->kind == MS_SAMPLE_ATTENTION_GRAD;
}

int ms_sample_point(const ms_sample *sample, double *point)
{
    int num = 0;
    if (ms_sample_is_attention(sample))
        point[num++] = sample->kind;
    if (sample->kind == MS_SAMPLE_COLLECTIVE) {
        point[num++] = sample->what;
        point[num++] = (double)sample->ranks;
    }
    static const int sizes[] = {[MS_SAMPLE_GEMM] = 4,           [MS_SAMPLE_ATTENTION] = 5,
                                [MS_SAMPLE_ATTENTION_GRAD] = 5, [MS_SAMPLE_POINTWISE] = 1,
                                [MS_SAMPLE_COLLECTIVE] = 1,     [MS_SAMPLE_STREAM] = 1,
                                [MS_SAMPLE_LAUNCH] = 1,         [MS_SAMPLE_ZERO_GEMM] = 4,
                                [MS_SAMPLE_WARM_UP] = 1};
    for (int i = 0; i < sizes[sample->kind]; i++)
        point[num++] = sample->size[i];
    point[num++] = sample->seconds;
    return num;
}
