/* What this machine is, from /proc and /sys; what cannot be read stays unknown. */
#include "exec/gemm.h"
#include "exec/measure.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

long ms_machine_cores(void)
{
    long num = sysconf(_SC_NPROCESSORS_ONLN);
    return num < 1 ? 1 : num;
}

/* The rest of the first line that begins with `key`, after a colon and blanks; NULL: none. */
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

/* "L1 Data 48K, L2 Unified 2048K": as the kernel lists them for the first core. */
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
