/* Work of the tasks of a step: FLOP, bytes, and the ranks that take part.
 * Engines need durations only; traces for other tools need this, too. */
#ifndef MS_SIM_SIMULATE_TASK_WORK_H
#define MS_SIM_SIMULATE_TASK_WORK_H

#include "sim/step/traffic.h"

typedef enum ms_work_kind {
    MS_WORK_KERNEL,
    MS_WORK_COLLECTIVE, /* all ranks of the group take part */
    MS_WORK_RING,    /* each rank of the group sends to the next, the last to the first */
    MS_WORK_SEND,    /* one message to pipeline rank `peer` */
    MS_WORK_EXCHANGE /* messages to and from pipeline rank `peer` */
} ms_work_kind;

typedef struct ms_task_work {
    ms_work_kind kind;
    ms_traffic_group group;   /* MS_TRAFFIC_PP for messages between pipeline ranks */
    ms_collective collective; /* MS_SEND for rings and messages */
    /* kernels: bytes read and written in HBM. Others: bytes as in ms_collective_s, the sum
     * over equal collectives one after the other. A collective with a hidden and an exposed
     * part is two tasks, which share its bytes like its seconds. */
    double bytes;
    double flop;          /* FLOP of a GEMM, attention or scan; 0 for other kernels */
    double element_bytes; /* bytes of one of the elements that a transfer moves */
    int peer;             /* pipeline rank at the other end of messages */
    /* number that both ends of an exchange share: its stage of the model; -1: the matrix
     * that embedding and head share */
    int stage;
} ms_task_work;

#endif
