/* Description of this machine, from /proc and /sys; unreadable values are NULL. */
#include "exec/cpu/gemm.h"
#include "exec/measure/measure.h"
#include "sim/validate/name_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Text after `key` (and colon, blanks) in the first line that begins with it; or NULL. */
static const char *read_line(ms_arena *arena, const char *path, const char *key)
{
    FILE *file = fopen(path, "r");
    char line[512];
    const char *found = NULL;
    while (file != NULL && found == NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        char *text = line + strlen(key);
        text += strspn(text, " \t:");
        text[strcspn(text, "\n")] = '\0';
        found = ms_arena_strdup(arena, text);
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* Number of cores in a list of Linux: "0-3,8" has 5. */
static long count_cores(const char *list)
{
    long num = 0;
    while (*list != '\0') {
        char *end;
        long first = strtol(list, &end, 10);
        long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        num += last - first + 1;
        list = *end == ',' ? end + 1 : "";
    }
    return num;
}

long ms_machine_cores(void)
{
    ms_arena *scratch = ms_arena_open();
    const char *list = read_line(scratch, "/proc/self/status", "Cpus_allowed_list");
    long num = list == NULL ? sysconf(_SC_NPROCESSORS_ONLN) : count_cores(list);
    ms_arena_close(scratch);
    return num < 1 ? 1 : num;
}

/* Caches of the first core, as Linux lists them: "L1 Data 48K, L2 Unified 2048K". */
static const char *read_caches(ms_arena *arena)
{
    const char *text = NULL;
    for (int i = 0; i < 8; i++) {
        const char *folder =
            ms_arena_printf(arena, "/sys/devices/system/cpu/cpu0/cache/index%d", i);
        const char *level =
            read_line(arena, ms_arena_printf(arena, "%s/level", folder), "");
        const char *type =
            read_line(arena, ms_arena_printf(arena, "%s/type", folder), "");
        const char *size =
            read_line(arena, ms_arena_printf(arena, "%s/size", folder), "");
        if (level == NULL || type == NULL || size == NULL)
            break;
        text = ms_arena_printf(arena, "%s%sL%s %s %s", text == NULL ? "" : text,
                               text == NULL ? "" : ", ", level, type, size);
    }
    return text;
}

ms_machine ms_machine_here(ms_arena *arena)
{
    struct utsname system;
    const char *kernel = NULL;
    if (uname(&system) == 0)
        kernel = ms_arena_printf(arena, "%s %s %s", system.sysname, system.release,
                                 system.machine);
    return (ms_machine){
        .cpu = read_line(arena, "/proc/cpuinfo", "model name"),
        .cores = ms_arena_printf(arena, "%ld", ms_machine_cores()),
        .caches = read_caches(arena),
        .memory = read_line(arena, "/proc/meminfo", "MemTotal"),
        .kernel = kernel,
        .compiler = __VERSION__,
        .blas = ms_gemm_library(),
    };
}

/* Text of a version number of CUDA or a library; "none" if the library is missing. */
static const char *version_text(ms_arena *arena, int version, int major, int minor)
{
    return version == 0 ? "none"
                        : ms_arena_printf(arena, "%d.%d.%d", version / major,
                                          version % major / minor, version % minor);
}

static const char *clock_text(ms_arena *arena, double hz)
{
    const double mega = 1e6;
    return hz > 0.0 ? ms_arena_printf(arena, "%.0f MHz", hz / mega) : "unknown";
}

void ms_machine_add_gpu(ms_arena *arena, const ms_cuda_facts *facts, ms_machine *machine)
{
    const double gib = 1024.0 * 1024.0 * 1024.0, mib = 1024.0 * 1024.0;
    machine->gpu =
        ms_arena_printf(arena, "%s, compute capability %d.%d, %d multiprocessors",
                        facts->name, facts->major, facts->minor, facts->num_sms);
    machine->gpu_memory = ms_arena_printf(
        arena, "%.1f GiB over %.0f bits, L2 cache %.0f MiB", facts->memory_bytes / gib,
        facts->bus_bits, facts->l2_bytes / mib);
    machine->gpu_clocks = ms_arena_printf(arena, "multiprocessors %s, memory %s",
                                          clock_text(arena, facts->clock_hz),
                                          clock_text(arena, facts->memory_clock_hz));
    machine->gpu_driver = ms_arena_printf(
        arena, "for CUDA %s", version_text(arena, facts->driver_version, 1000, 10));
    machine->gpu_libraries =
        ms_arena_printf(arena, "CUDA %s, cuBLASLt %s, cuDNN %s, NCCL %s",
                        version_text(arena, facts->runtime_version, 1000, 10),
                        version_text(arena, facts->blas_version, 10000, 100),
                        version_text(arena, facts->cudnn_version, 10000, 100),
                        version_text(arena, facts->nccl_version, 10000, 100));
}

const char *ms_machine_cluster_of_gpu(ms_ctx *cx, const char *name)
{
    const ms_name_tables *names;
    if (ms_name_tables_load(cx, &names) != MS_OK)
        return NULL;
    const ms_system_name *found = ms_system_name_find(names->drivers, name, 1);
    return found == NULL ? NULL : found->cluster;
}
