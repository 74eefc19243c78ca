/* How much longer kernels take while transfers move than alone, measured and by the law of
 * predictions (docs/formulas 12.11), from the time records of a rank that executed alone. */
#ifndef MS_EXEC_RUNNER_KERNEL_SLOWDOWN_H
#define MS_EXEC_RUNNER_KERNEL_SLOWDOWN_H

#include "exec/core/record.h"

/* Kernels of a kind. Means are those of the kernels that met transfers and have an equal
 * one that met none: of one name, task kind and predicted time. NaN: no kernel has. */
typedef struct ms_kernel_slowdown {
    const char *name;               /* node of a layer program; NULL: all kinds */
    int task_kind;                  /* an ms_task_kind */
    long num_alone, num_overlapped; /* executions without and with a transfer */
    long num_compared;              /* overlapped executions that the means count */
    double alone_s;                 /* mean seconds of equal kernels alone */
    double overlapped_s;            /* mean seconds beside transfers */
    double moving_s;                /* mean seconds in which transfers moved meanwhile */
    double predicted_s;             /* mean seconds beside them by the law */
} ms_kernel_slowdown;

typedef struct ms_kernel_slowdowns {
    ms_kernel_slowdown all;
    int num;
    ms_kernel_slowdown *kinds; /* (num), those with most time beside transfers first */
} ms_kernel_slowdowns;

/* Compares the kernels of layer programs of all recorded steps. interference_frac: share
 * of a kernel's speed that predictions take from it beside transfers. Kernels with
 * transfers beside them for less than 1 % of their time count as alone, since stamps are
 * that coarse. Lives in the arena. */
ms_kernel_slowdowns ms_kernel_slowdowns_make(ms_arena *arena, const ms_recorder *recorder,
                                             double interference_frac);

#endif
