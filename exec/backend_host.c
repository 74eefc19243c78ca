#include "exec/backend_host.h"

#include <stdint.h>
#include <stdlib.h>

#define ALIGNMENT 64

void *ms_host_allocate(ms_device_rank *device, size_t bytes)
{
    (void)device;
    if (bytes == 0 || bytes > SIZE_MAX - ALIGNMENT)
        return NULL;
    return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

void ms_host_release(ms_device_rank *device, void *memory, size_t bytes)
{
    (void)device;
    (void)bytes;
    free(memory);
}

void ms_host_idle(ms_device_rank *device, double seconds)
{
    (void)device;
    (void)seconds;
}

ms_event ms_host_mark(ms_device_rank *device)
{
    (void)device;
    return 0;
}
