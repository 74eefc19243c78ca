/* What this machine has left for the ranks of a run. */
#ifndef MS_EXEC_HOST_H
#define MS_EXEC_HOST_H

/* Memory that processes can still get: MemAvailable of /proc/meminfo, or less where a
 * control group limits it (memory.max less memory.current of cgroup v2, without its
 * inactive file pages); without either what the machine has; NaN: unknown. */
double ms_host_memory_bytes(void);

#endif
