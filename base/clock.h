#ifndef MS_BASE_CLOCK_H
#define MS_BASE_CLOCK_H

/* Seconds of CLOCK_MONOTONIC; only differences have a meaning. */
double ms_clock_s(void);

#endif
