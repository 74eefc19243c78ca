/* Comparisons of finite numbers, inlined: fmax and fmin are library calls, since they must treat NaN. */
#ifndef MS_BASE_NUMBER_H
#define MS_BASE_NUMBER_H

static inline double ms_max(double a, double b)
{
    return a > b ? a : b;
}

static inline double ms_min(double a, double b)
{
    return a < b ? a : b;
}

#endif
