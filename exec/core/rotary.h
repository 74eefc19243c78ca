/* Frequencies of rotary positions (Su et al. 2021), for CPU and GPU kernels; plain C that
 * CUDA compiles too. Scaling: huggingface transformers, modeling_rope_utils.py. */
#ifndef MS_EXEC_CORE_ROTARY_H
#define MS_EXEC_CORE_ROTARY_H

#include "exec/core/on_device.h"

#include <math.h>
#include <stdbool.h>

typedef enum ms_rotary_law {
    MS_ROTARY_PLAIN,
    MS_ROTARY_LINEAR,
    MS_ROTARY_LLAMA3,
    MS_ROTARY_YARN
} ms_rotary_law;

/* How a ROTARY node rotates the pairs of a head. */
typedef struct ms_rotary {
    ms_rotary_law law;
    int count; /* pairs of a head */
    double base, factor;
    /* llama3: wave lengths above `low` are scaled, below `high` they are not; yarn: the
     * ramp of pairs from `low`, not scaled, to `high`, scaled */
    double low, high;
    double amplitude; /* factor of cosines and sines */
    bool interleaved; /* pair i is (2i, 2i + 1), otherwise (i, count + i) */
    bool leading;     /* the pairs are a head's first entries, otherwise the last */
} ms_rotary;

/* Angle between neighbouring positions of pair `pair`. */
static inline MS_ON_DEVICE double ms_rotary_frequency(const ms_rotary *r, long pair)
{
    double plain = 1 / pow(r->base, (double)pair / (double)r->count), kept = 0;
    if (r->law == MS_ROTARY_PLAIN)
        return plain;
    if (r->law == MS_ROTARY_LLAMA3) /* in 1 / wave length; 2 pi / plain is the length */
        kept = (plain / 6.283185307179586 - 1 / r->low) / (1 / r->high - 1 / r->low);
    if (r->law == MS_ROTARY_YARN)
        kept = 1 - ((double)pair - r->low) / (r->high - r->low);
    kept = kept < 0 ? 0 : (kept > 1 ? 1 : kept);
    return (1 - kept) * plain / r->factor + kept * plain;
}

#ifndef __cplusplus
#include "costmodel/program/program.h"

/* The rotation of a ROTARY node. */
ms_rotary ms_rotary_of(const ms_model *model, const ms_node *node);
#endif

#endif
