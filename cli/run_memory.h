/* Whether the ranks of a run have room on this machine. */
#ifndef MS_CLI_RUN_MEMORY_H
#define MS_CLI_RUN_MEMORY_H

#include "cli/run_options.h"
#include "sim/prediction.h"

typedef struct ms_run_room {
    double
        needed_bytes; /* predicted peaks of all ranks, and whole tensors that are asked for */
    double
        available_bytes; /* of this machine, not in use, within the limit of its control group; INFINITY: not known */
    const char *change;  /* the nearest that fits, as flags; NULL: none was found */
    const char *reason;  /* one sentence; NULL: there is room */
} ms_run_room;

/* `num_whole`: copies of all weights or gradients that the process of rank 0 keeps. */
ms_run_room ms_run_room_of(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                           const ms_prediction *prediction, int num_whole);

/* Records what is missing and the change as its hint: MS_ENOFIT. */
ms_status ms_run_room_fail(ms_ctx *cx, const ms_run_room *room);
/* As an object with the keys of a prediction's shortfall: reason, needed_bytes, capacity_bytes, shortfall_bytes, plan, nearest_change (null: none was found). */
void ms_run_room_write_json(ms_jout *out, const ms_run_room *room, const ms_plan *plan);

#endif
