/* Debug log on stderr by topic, switched on by the environment variable
 * MESHSIM_DEBUG="search" ("all" for every topic), which is read once. */
#ifndef MS_BASE_LOG_H
#define MS_BASE_LOG_H

#include <stdbool.h>

/* Prints one line "[topic] message" if the topic is on. */
void ms_log(const char *topic, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
