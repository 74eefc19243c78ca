#include "tests/support/fp8_numbers.h"

#include "tests/support/cuda_fake_numbers.h"

#include <math.h>

double ms_fp8_value(ms_scalar format, unsigned code)
{
    unsigned char bits = (unsigned char)code;
    return fake_number(format, &bits, 0);
}

double ms_fp8_largest(ms_scalar format)
{
    return format == MS_SCALAR_E4M3 ? 448 : 57344;
}

unsigned ms_fp8_nearest(ms_scalar format, double x)
{
    const unsigned sign_bit = 0x80, nan = 0x7f;
    unsigned best = 0, sign = signbit(x) ? sign_bit : 0;
    double size = fmin(fabs(x), ms_fp8_largest(format));
    if (isnan(x))
        return sign | nan;
    for (unsigned code = 0; ms_fp8_value(format, code) <= ms_fp8_largest(format);
         code++) {
        double far = fabs(size - ms_fp8_value(format, code)),
               so_far = fabs(size - ms_fp8_value(format, best));
        if (far < so_far || (far == so_far && code % 2 == 0))
            best = code;
    }
    return sign | best;
}
