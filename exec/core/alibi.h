/* Slopes of ALiBi (Press et al. 2022, arXiv 2108.12409): attention adds slope x (key
 * position - query position) to a head's scores. */
#ifndef MS_EXEC_CORE_ALIBI_H
#define MS_EXEC_CORE_ALIBI_H

#include "exec/core/on_device.h"

#include <math.h>

/* Slope of `head` of all `num_heads` heads of the model: 2^(-8 (head + 1) / n) with n the
 * largest power of 2 up to num_heads; heads beyond n take every other slope of 2 n heads
 * (transformers modeling_bloom.py, modeling_mpt.py with alibi_bias_max 8). */
static inline MS_ON_DEVICE double ms_alibi_slope(long num_heads, long head)
{
    long power = 1;
    while (2 * power <= num_heads)
        power *= 2;
    double step = 8.0 / (double)power;
    return head < power ? exp2(-step * (double)(head + 1))
                        : exp2(-step / 2 * (double)(2 * (head - power) + 1));
}

#endif
