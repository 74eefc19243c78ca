#include "exec/host.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number after `key` on the first line that begins with it; NaN: none. */
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
    return (double)pages * (double)page_bytes; /* not positive: nobody knows */
}

double ms_host_memory_bytes(void)
{
    double available_kib = read_number("/proc/meminfo", "MemAvailable:");
    double limit_bytes = read_number("/sys/fs/cgroup/memory.max", "");
    double used_bytes = read_number("/sys/fs/cgroup/memory.current", "");
    double bytes = isnan(available_kib) ? installed_bytes() : 1024.0 * available_kib;
    if (!isnan(limit_bytes) && !isnan(used_bytes))
        bytes = ms_min(bytes, ms_max(limit_bytes - used_bytes, 0.0));
    return bytes;
}

ms_status ms_host_cluster(ms_ctx *cx, long ranks, const ms_cluster **out)
{
    const ms_cluster *generic;
    MS_TRY(ms_cluster_load(cx, "cpu", &generic));
    ms_cluster *cluster = MS_NEW(cx->arena, ms_cluster);
    double bytes = ms_host_memory_bytes();
    *cluster = *generic;
    cluster->gpus_per_node = ranks;
    cluster->description = "the CPU cores of this machine, a rank each";
    if (bytes > 0.0)
        cluster->device.memory_bytes = bytes / (double)ranks;
    *out = cluster;
    return MS_OK;
}
