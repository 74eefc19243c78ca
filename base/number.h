/* Small numeric functions. */
#ifndef MS_BASE_NUMBER_H
#define MS_BASE_NUMBER_H

/* Maximum and minimum of finite numbers, faster than fmax and fmin, which handle NaN. */
static inline double ms_max(double a, double b)
{
    return a > b ? a : b;
}

static inline double ms_min(double a, double b)
{
    return a < b ? a : b;
}

/* Greatest common divisor of two positive numbers (Euclid, Elements VII.2). */
static inline long ms_greatest_divisor(long a, long b)
{
    while (b != 0) {
        long rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
