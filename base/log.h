/* Debug log on stderr by topic, switched on by MESHSIM_DEBUG="search" ("all": every
 * topic). */
#ifndef MS_BASE_LOG_H
#define MS_BASE_LOG_H

#include <stdbool.h>

/* Prints one line "[topic] message" if the topic is on. */
void ms_log(const char *topic, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
