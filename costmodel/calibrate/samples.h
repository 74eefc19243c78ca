/* Measured times of kernels and collectives, exchanged between processes as JSON. */
#ifndef MS_COSTMODEL_CALIBRATE_SAMPLES_H
#define MS_COSTMODEL_CALIBRATE_SAMPLES_H

#include "base/json.h"

typedef enum ms_sample_kind {
    MS_SAMPLE_GEMM,      /* size: batch, m, n, k */
    MS_SAMPLE_ATTENTION, /* size: FLOP, key tokens, head dim, score elements, bytes */
    MS_SAMPLE_ATTENTION_GRAD, /* size: as for MS_SAMPLE_ATTENTION */
    MS_SAMPLE_POINTWISE,      /* `what` is an ms_op; size: bytes */
    MS_SAMPLE_COLLECTIVE,     /* `what` is an ms_collective over `ranks`; size: bytes */
    MS_SAMPLE_STREAM,         /* sum of two arrays larger than caches; size: bytes */
    MS_SAMPLE_LAUNCH,         /* host time to launch a small kernel; size: 1 */
    /* Conditions of the measurement, from which nothing is fitted: a GEMM of zeros, size
     * as for MS_SAMPLE_GEMM; time until the largest GEMM's time was steady, size: 1 if it
     * became so, 0 if the warm-up ended before */
    MS_SAMPLE_ZERO_GEMM,
    MS_SAMPLE_WARM_UP,
    MS_NUM_SAMPLE_KINDS
} ms_sample_kind;

#define MS_SAMPLE_SIZES 5

/* Measured time of one kernel or collective in one launch of the measuring program. */
typedef struct ms_sample {
    int kind; /* ms_sample_kind */
    int what;
    long ranks;
    int launch; /* index of the program launch, from 0 */
    double size[MS_SAMPLE_SIZES];
    double seconds;   /* median time on the slowest rank, less waits for a CPU core */
    double typical_s; /* median elapsed time, with waits for a CPU core */
} ms_sample;

typedef struct ms_samples {
    int num, capacity;
    ms_sample *items;
} ms_samples;

/* Whether two samples measured the same operation and sizes on equally many ranks. */
bool ms_samples_alike(const ms_sample *a, const ms_sample *b);
void ms_samples_add(ms_arena *arena, ms_samples *samples, const ms_sample *sample);
/* Writes samples as a JSON array, one row of numbers per sample. */
void ms_samples_write(ms_jout *out, const ms_samples *samples);
/* Appends the samples in a JSON array. MS_EINPUT if a row is no sample. */
ms_status ms_samples_read(ms_ctx *cx, ms_jval array, ms_samples *samples);

#endif
