/* What backends on CPUs have in common: streams that keep up with the program. For their tables of functions. */
#ifndef MS_EXEC_BACKEND_HOST_H
#define MS_EXEC_BACKEND_HOST_H

#include "exec/backend.h"

void ms_host_idle(ms_device_rank *device, double seconds); /* does nothing */
ms_event ms_host_mark(
    ms_device_rank *device); /* kernels have run when their call returns */

#endif
