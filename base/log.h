/* Topic log on stderr, switched on by MESHSIM_DEBUG="search" ("all" for every topic).
 * Parsed once. The core reads one other variable, MESHSIM_CONFIGS (paths.h). */
#ifndef MS_BASE_LOG_H
#define MS_BASE_LOG_H

#include <stdbool.h>

void ms_log(const char *topic, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
