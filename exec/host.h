/* This machine as a cluster, for plans that are run on its CPU cores. */
#ifndef MS_EXEC_HOST_H
#define MS_EXEC_HOST_H

#include "topo/cluster.h"

/* Memory that processes can still get: MemAvailable of /proc/meminfo, or less where a control group limits it (memory.max less memory.current of cgroup v2); without
 * either what the machine has; 0 or less: unknown. */
double ms_host_memory_bytes(void);

/* The cluster "cpu" (configs/clusters/cpu.json) for `ranks` ranks of one machine: each has its share of the memory, all are in one node. Rates stay those of the file, since
 * calibrated profiles are fractions of them. Lives in cx->arena. */
ms_status ms_host_cluster(ms_ctx *cx, long ranks, const ms_cluster **out);

#endif
