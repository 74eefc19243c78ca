/* FP8 numbers by the definition of their formats, found by searching all codes. */
#ifndef MS_TESTS_SUPPORT_FP8_NUMBERS_H
#define MS_TESTS_SUPPORT_FP8_NUMBERS_H

#include "exec/core/scalar.h"

/* Value of a code; `format`: MS_SCALAR_E4M3 or MS_SCALAR_E5M2. */
double ms_fp8_value(ms_scalar format, unsigned code);
double ms_fp8_largest(ms_scalar format);
/* Code of the nearest number, ties to even; beyond the largest number, that one. */
unsigned ms_fp8_nearest(ms_scalar format, double x);

#endif
