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

double ms_rounded_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x == x) /* NaN stays NaN */
        bits = (bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

ms_precision ms_precision_of(ms_real_type type)
{
    static const ms_precision precisions[] = {
        [MS_REAL_FP32] = {MS_SCALAR_FP32, MS_SCALAR_FP32, MS_SCALAR_FP32, MS_SCALAR_FP32,
                          false, false},
        [MS_REAL_FP64] = {MS_SCALAR_FP64, MS_SCALAR_FP64, MS_SCALAR_FP64, MS_SCALAR_FP64,
                          false, false},
        [MS_REAL_BF16] = {MS_SCALAR_BF16, MS_SCALAR_FP32, MS_SCALAR_FP32, MS_SCALAR_FP32,
                          true, false},
        [MS_REAL_FP8] = {MS_SCALAR_BF16, MS_SCALAR_FP32, MS_SCALAR_FP32, MS_SCALAR_FP32,
                         true, true},
        [MS_REAL_FP4] = {MS_SCALAR_BF16, MS_SCALAR_FP32, MS_SCALAR_FP32, MS_SCALAR_FP32,
                         true, false}};
    return precisions[type];
}
