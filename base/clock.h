/* The clock that measures durations. */
#ifndef MS_BASE_CLOCK_H
#define MS_BASE_CLOCK_H

/* Seconds of a monotonic clock (CLOCK_MONOTONIC) that is never set back; only
 * differences have a meaning. */
double ms_clock_s(void);

#endif
