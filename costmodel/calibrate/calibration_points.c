/* Selects the samples of a fit and converts them to points. */
#include "costmodel/calibrate/calibration_priv.h"

bool ms_sample_is_gemm(const ms_sample *sample, int what)
{
    (void)what;
    return sample->kind == MS_SAMPLE_GEMM;
}

bool ms_sample_is_attention(const ms_sample *sample, int what)
{
    (void)what;
    return sample->kind == MS_SAMPLE_ATTENTION ||
           sample->kind == MS_SAMPLE_ATTENTION_GRAD;
}

bool ms_sample_is_operation(const ms_sample *sample, int what)
{
    return sample->kind == MS_SAMPLE_POINTWISE && sample->what == what;
}

bool ms_sample_is_stream(const ms_sample *sample, int what)
{
    (void)what;
    return sample->kind == MS_SAMPLE_STREAM;
}

bool ms_sample_is_collective(const ms_sample *sample, int what)
{
    return sample->kind == MS_SAMPLE_COLLECTIVE && sample->what == what;
}

bool ms_sample_is_ring(const ms_sample *sample, int what)
{
    (void)what;
    return ms_sample_is_collective(sample, MS_ALL_GATHER) ||
           ms_sample_is_collective(sample, MS_REDUCE_SCATTER) ||
           ms_sample_is_collective(sample, MS_ALL_REDUCE);
}

int ms_sample_point(const ms_sample *sample, double *point)
{
    int num = 0;
    if (ms_sample_is_attention(sample, 0))
        point[num++] = sample->kind;
    if (sample->kind == MS_SAMPLE_COLLECTIVE) {
        point[num++] = sample->what;
        point[num++] = (double)sample->ranks;
    }
    static const int sizes[] = {[MS_SAMPLE_GEMM] = 4,           [MS_SAMPLE_ATTENTION] = 5,
                                [MS_SAMPLE_ATTENTION_GRAD] = 5, [MS_SAMPLE_POINTWISE] = 1,
                                [MS_SAMPLE_COLLECTIVE] = 1,     [MS_SAMPLE_STREAM] = 1,
                                [MS_SAMPLE_LAUNCH] = 1};
    for (int i = 0; i < sizes[sample->kind]; i++)
        point[num++] = sample->size[i];
    point[num++] = sample->seconds;
    return num;
}
