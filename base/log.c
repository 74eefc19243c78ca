/* Several threads may log at once; the topics in MESHSIM_DEBUG are read once. */
#include "base/log.h"

#include "base/print.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t topics_once = PTHREAD_ONCE_INIT;
static char topics[512];

static void read_topics(void)
{
    const char *text = getenv("MESHSIM_DEBUG");
    if (text != NULL)
        snprintf(topics, sizeof topics, "%s", text);
}

static bool is_on(const char *topic)
{
    pthread_once(&topics_once, read_topics);
    size_t length = strlen(topic);
    const char *p = topics;
    while (*p != '\0') {
        size_t word = strcspn(p, ",");
        bool is_all = word == 3 && strncmp(p, "all", 3) == 0;
        if (is_all || (word == length && strncmp(p, topic, length) == 0))
            return true;
        p += word;
        p += *p == ',';
    }
    return false;
}

void ms_log(const char *topic, const char *format, ...)
{
    if (!is_on(topic))
        return;
    va_list args;
    va_start(args, format);
    flockfile(stderr); /* keeps lines of different threads apart */
    fprintf(stderr, "[%s] ", topic);
    ms_vprint(stderr, format, args);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(args);
}
