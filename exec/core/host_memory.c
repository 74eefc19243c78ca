#include "exec/core/host_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Number after `key` on a file's first line beginning with it; NaN if there is none. */
static double read_number(const char *path, const char *key)
{
    FILE *file = fopen(path, "r");
    char line[256];
    double found = NAN;
    while (file != NULL && isnan(found) && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        char *end;
        double value = strtod(line + strlen(key), &end);
        found = end != line + strlen(key) ? value : found;
    }
    if (file != NULL)
        fclose(file);
    return found;
}

static double installed_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (double)pages * (double)page_bytes : (double)NAN;
}

/* Bytes left below the memory limit of this process's control group (cgroup v2), counting
 * inactive file pages, which can be reclaimed; NaN without limit. */
static double left_in_group_bytes(void)
{
    double limit_bytes = read_number("/sys/fs/cgroup/memory.max", "");
    double used_bytes = read_number("/sys/fs/cgroup/memory.current", "");
    double cached_bytes = read_number("/sys/fs/cgroup/memory.stat", "inactive_file ");
    used_bytes -= isnan(cached_bytes) ? 0.0 : cached_bytes;
    return limit_bytes < used_bytes ? 0.0 : limit_bytes - used_bytes;
}

double ms_host_memory_bytes(void)
{
    double available_kib = read_number("/proc/meminfo", "MemAvailable:");
    double bytes = isnan(available_kib) ? installed_bytes() : 1024.0 * available_kib;
    double left_bytes = left_in_group_bytes();
    return isnan(left_bytes) || left_bytes > bytes ? bytes : left_bytes;
}
