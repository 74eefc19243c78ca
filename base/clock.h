#ifndef MS_BASE_CLOCK_H
#define MS_BASE_CLOCK_H

/* Seconds that only differences mean anything of (CLOCK_MONOTONIC): nobody sets this clock. */
double ms_clock_s(void);

#endif
