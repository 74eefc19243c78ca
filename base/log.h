/* Debug log on stderr by topic: MESHSIM_DEBUG="search", or "all". */
#ifndef MS_BASE_LOG_H
#define MS_BASE_LOG_H

#include <stdbool.h>

/* Prints "[topic] message" on a line if MESHSIM_DEBUG has the topic. */
void ms_log(const char *topic, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
