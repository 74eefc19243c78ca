#include "costmodel/tensor/collective.h"

#include <stddef.h>

const char *const ms_collective_names[] = {"all-gather", "reduce-scatter", "all-reduce",
                                           "all-to-all", "send",           NULL};

double ms_collective_wire_bytes(ms_collective collective, long group_size,
                                double size_bytes)
{
    if (group_size <= 1)
        return 0.0;
    if (collective == MS_SEND)
        return size_bytes;
    double share = (double)(group_size - 1) / (double)group_size;
    return (collective == MS_ALL_REDUCE ? 2.0 : 1.0) * share * size_bytes;
}
