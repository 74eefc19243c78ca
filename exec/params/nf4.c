#include "exec/params/nf4.h"

#include "exec/params/optimizer.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

const double ms_nf4_numbers[16] = {
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
};

static_assert(MS_NF4_SCALES == MS_STATE_BLOCK, "a group has one fp32 scale");

static long num_begun(long count, long size)
{
    return (count + size - 1) / size;
}

long ms_nf4_bytes(long count)
{
    return (long)sizeof(float) * num_begun(count, MS_NF4_GROUP) +
           num_begun(count, MS_NF4_BLOCK) + num_begun(count, 2);
}

static unsigned code_of(double x)
{
    unsigned code = 0;
    while (code < 15 && x - ms_nf4_numbers[code] > ms_nf4_numbers[code + 1] - x)
        code++;
    return code;
}

/* Layout of a group: its fp32 scale, its blocks' 8-bit scales, then two codes a byte, the
 * first in the low half. */
static void write_group(const double *values, long count, unsigned char *to)
{
    double scales[MS_NF4_SCALES] = {0};
    float scale;
    long num_blocks = num_begun(count, MS_NF4_BLOCK);
    unsigned char *codes = to + sizeof scale + num_blocks;
    for (long i = 0; i < count; i++)
        scales[i / MS_NF4_BLOCK] = fmax(scales[i / MS_NF4_BLOCK], fabs(values[i]));
    for (long i = 0; i < count; i++) {
        double largest = scales[i / MS_NF4_BLOCK];
        unsigned code = code_of(largest > 0.0 ? values[i] / largest : 0.0);
        codes[i / 2] = (unsigned char)(i % 2 == 0 ? code : code << 4 | codes[i / 2]);
    }
    ms_codes_write(false, scales, num_blocks, to + sizeof scale, &scale);
    memcpy(to, &scale, sizeof scale);
}

static void read_group(const unsigned char *from, long count, double *values)
{
    double scales[MS_NF4_SCALES];
    float scale;
    long num_blocks = num_begun(count, MS_NF4_BLOCK);
    const unsigned char *codes = from + sizeof scale + num_blocks;
    memcpy(&scale, from, sizeof scale);
    ms_codes_read(false, from + sizeof scale, &scale, num_blocks, scales);
    for (long i = 0; i < count; i++)
        values[i] =
            ms_nf4_numbers[codes[i / 2] >> 4 * (i % 2) & 15] * scales[i / MS_NF4_BLOCK];
}

static long group_length(long first, long count)
{
    return count - first < MS_NF4_GROUP ? count - first : MS_NF4_GROUP;
}

void ms_nf4_write(const double *values, long count, unsigned char *to)
{
    for (long first = 0; first < count; first += MS_NF4_GROUP)
        write_group(values + first, group_length(first, count), to + ms_nf4_bytes(first));
}

void ms_nf4_read(const unsigned char *from, long count, double *values)
{
    for (long first = 0; first < count; first += MS_NF4_GROUP)
        read_group(from + ms_nf4_bytes(first), group_length(first, count),
                   values + first);
}
