#include "exec/backend_host.h"

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
