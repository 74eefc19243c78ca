/* Main memory of this machine that is left for the ranks of a run. */
#ifndef MS_EXEC_CORE_HOST_MEMORY_H
#define MS_EXEC_CORE_HOST_MEMORY_H

/* Bytes that processes can still get: MemAvailable of /proc/meminfo, or less by a control
 * group (cgroup v2); installed memory if neither is known; NaN if unknown. */
double ms_host_memory_bytes(void);

#endif
