#include "exec/core/scalar.h"

#include <stdint.h>
#include <string.h>

const char *const ms_scalar_names[] = {
    [MS_SCALAR_FP32] = "fp32", [MS_SCALAR_FP64] = "fp64", [MS_SCALAR_BF16] = "bf16",
    [MS_SCALAR_LONG] = "long", [MS_SCALAR_BYTE] = "byte", [MS_SCALAR_E4M3] = "e4m3",
    [MS_SCALAR_E5M2] = "e5m2", [MS_NUM_SCALARS] = NULL};

size_t ms_scalar_bytes(ms_scalar scalar)
{
    static const size_t bytes[] = {[MS_SCALAR_FP32] = 4, [MS_SCALAR_FP64] = 8,
                                   [MS_SCALAR_BF16] = 2, [MS_SCALAR_LONG] = sizeof(long),
                                   [MS_SCALAR_BYTE] = 1, [MS_SCALAR_E4M3] = 1,
                                   [MS_SCALAR_E5M2] = 1};
    return bytes[scalar];
}

double ms_bf16_value(uint16_t bf16)
{
    float single;
    memcpy(&single, &(uint32_t){(uint32_t)bf16 << 16}, sizeof single);
    return (double)single;
}

/* A number is not rounded twice: what fp32 lost of it breaks the tie between two bf16. */
uint16_t ms_bf16_of(double x)
{
    float single = (float)x;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    if (x != x)
        return (uint16_t)(bits >> 16 | 0x40U);
    double left = x - (double)single;
    if ((bits & 0xffffU) == 0x8000U && left != 0.0) {
        bool grows = (left > 0.0) == (x > 0.0);
        return (uint16_t)((bits >> 16) + (grows ? 1 : 0));
    }
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

ms_precision ms_precision_of(ms_real_type type)
{
    static const ms_scalar reals[] = {[MS_REAL_FP32] = MS_SCALAR_FP32,
                                      [MS_REAL_FP64] = MS_SCALAR_FP64,
                                      [MS_REAL_BF16] = MS_SCALAR_BF16,
                                      [MS_REAL_FP8] = MS_SCALAR_BF16,
                                      [MS_REAL_FP4] = MS_SCALAR_BF16};
    ms_scalar real = reals[type];
    bool is_narrow = real == MS_SCALAR_BF16;
    ms_scalar wide = is_narrow ? MS_SCALAR_FP32 : real;
    return (ms_precision){.real = real,
                          .statistic = wide,
                          .param = real,
                          .gather = real,
                          .gradient = wide,
                          .comm = wide,
                          .moment = wide,
                          .master = wide,
                          .has_master = is_narrow,
                          .has_fp8 = type == MS_REAL_FP8};
}
