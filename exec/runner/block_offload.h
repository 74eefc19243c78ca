/* Saved activations of a block in host memory, from the end of its forward until its own
 * backward: those that the memory model takes off the device (ms_bill_host_bytes). */
#ifndef MS_EXEC_RUNNER_BLOCK_OFFLOAD_H
#define MS_EXEC_RUNNER_BLOCK_OFFLOAD_H

#include "exec/runner/block_run.h"

/* Copies what the plan offloads of a block to host memory, and frees it on the device: if
 * layer inputs are offloaded the block's, then other tensors in the order of the program,
 * the last of them in part. What of a tensor stays passes through workspace, so that the
 * device holds nothing twice. Called at the end of forward, when only what backward needs
 * is left. */
ms_status ms_block_to_host(const ms_block_run *run);
/* Brings all of it back, before backward reads it. */
ms_status ms_block_from_host(const ms_block_run *run);

#endif
