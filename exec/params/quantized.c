#include "exec/params/quantized.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static int per_byte(ms_quantized_bits bits)
{
    assert(bits != MS_NOT_QUANTISED);
    return bits == MS_QUANTISED_4 ? 2 : 1;
}

static double largest_code(ms_quantized_bits bits)
{
    return bits == MS_QUANTISED_4 ? 7.0 : 127.0;
}

long ms_quantized_bytes(ms_quantized_bits bits, long count)
{
    long blocks = (count + MS_QUANTISED_BLOCK - 1) / MS_QUANTISED_BLOCK;
    return blocks * (long)sizeof(float) + (count + per_byte(bits) - 1) / per_byte(bits);
}

/* Layout of a block: its scale, then its codes plus 128, or plus 8 and two in a byte, the
 * first in the low half. */
static void write_block(ms_quantized_bits bits, const double *values, long count,
                        unsigned char *to)
{
    double largest = 0.0;
    int each = per_byte(bits), width = 8 / each;
    for (long i = 0; i < count; i++)
        largest = fmax(largest, fabs(values[i]));
    float scale = (float)(largest / largest_code(bits));
    memcpy(to, &scale, sizeof scale);
    to += sizeof scale;
    memset(to, 0, (size_t)((count + each - 1) / each));
    for (long i = 0; i < count; i++) {
        double code = scale > 0.0F ? values[i] / (double)scale : 0.0;
        code = fmax(-largest_code(bits), fmin(largest_code(bits), nearbyint(code)));
        unsigned shifted = (unsigned)((int)code + (1 << (width - 1)));
        to[i / each] |= (unsigned char)(shifted << width * (int)(i % each));
    }
}

static void read_block(ms_quantized_bits bits, const unsigned char *from, long count,
                       double *values)
{
    float scale;
    int each = per_byte(bits), width = 8 / each;
    memcpy(&scale, from, sizeof scale);
    from += sizeof scale;
    for (long i = 0; i < count; i++) {
        int shifted = from[i / each] >> width * (int)(i % each) & ((1 << width) - 1);
        values[i] = (double)(shifted - (1 << (width - 1))) * (double)scale;
    }
}

static long block_length(long first, long count)
{
    return count - first < MS_QUANTISED_BLOCK ? count - first : MS_QUANTISED_BLOCK;
}

void ms_quantized_write(ms_quantized_bits bits, const double *values, long count,
                        unsigned char *to)
{
    for (long first = 0; first < count; first += MS_QUANTISED_BLOCK)
        write_block(bits, values + first, block_length(first, count),
                    to + ms_quantized_bytes(bits, first));
}

void ms_quantized_read(ms_quantized_bits bits, const unsigned char *from, long count,
                       double *values)
{
    for (long first = 0; first < count; first += MS_QUANTISED_BLOCK)
        read_block(bits, from + ms_quantized_bytes(bits, first),
                   block_length(first, count), values + first);
}
