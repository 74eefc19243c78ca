/* Numbers of FP8 as their formats are defined, found by looking at all of them. */
#ifndef MS_TESTS_SUPPORT_FP8_NUMBERS_H
#define MS_TESTS_SUPPORT_FP8_NUMBERS_H

#include "exec/core/scalar.h"

/* MS_SCALAR_E4M3 and MS_SCALAR_E5M2. */
double ms_fp8_value(ms_scalar format, unsigned code);
double ms_fp8_largest(ms_scalar format);
/* The nearest number, of two the even one; beyond the largest that one. */
unsigned ms_fp8_nearest(ms_scalar format, double x);

#endif
