/* Measured times, as one process hands them to another. */
#ifndef MS_COSTMODEL_SAMPLES_H
#define MS_COSTMODEL_SAMPLES_H

#include "base/json.h"

typedef enum ms_sample_kind {
    MS_SAMPLE_PRODUCT,   /* size: batch, m, n, k */
    MS_SAMPLE_ATTENTION, /* size: FLOP, key tokens, head dim, score elements, bytes */
    MS_SAMPLE_ATTENTION_GRAD, /* likewise */
    MS_SAMPLE_POINTWISE,      /* what: ms_op; size: bytes */
    MS_SAMPLE_COLLECTIVE,     /* what: ms_collective, over `ranks`; size: bytes */
    MS_SAMPLE_STREAM, /* arrays larger than caches, one added to another; size: bytes */
    MS_SAMPLE_LAUNCH, /* a small kernel, of the host's time alone; size: 1 */
    MS_NUM_SAMPLE_KINDS
} ms_sample_kind;

#define MS_SAMPLE_SIZES 5

/* One case in one launch. */
typedef struct ms_sample {
    int kind; /* ms_sample_kind */
    int what;
    long ranks;
    int launch; /* from 0 */
    double size[MS_SAMPLE_SIZES];
    double seconds;   /* the median of the launch, of the slowest rank: at work */
    double typical_s; /* likewise, waiting for a core included */
} ms_sample;

typedef struct ms_samples {
    int num, capacity;
    ms_sample *items;
} ms_samples;

bool ms_samples_alike(const ms_sample *a,
                      const ms_sample *b); /* the same case of the same ranks */
void ms_samples_add(ms_arena *arena, ms_samples *samples, const ms_sample *sample);
/* An array of a row of numbers each. */
void ms_samples_write(ms_jout *out, const ms_samples *samples);
/* Appends. MS_EINPUT: rows that are no samples. */
ms_status ms_samples_read(ms_ctx *cx, ms_jval array, ms_samples *samples);

#endif
