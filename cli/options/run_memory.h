/* Whether the ranks of a run have room on this machine. */
#ifndef MS_CLI_OPTIONS_RUN_MEMORY_H
#define MS_CLI_OPTIONS_RUN_MEMORY_H

#include "cli/options/run_options.h"
#include "sim/step/prediction.h"

/* The ranks of a plan that share this machine's memory, or that of its GPUs. */
typedef struct ms_run_place {
    const ms_world *world;
    long first_rank, num_ranks; /* one after the other, as launchers fill nodes */
    /* copies of all weights or gradients that their processes keep, or have yet to
     * load */
    long num_whole;
    /* that ranks are on in turn; 0: they are in the memory of this machine */
    int num_gpus;
    double gpu_bytes; /* of each, in use or not */
    /* of the one rank on CPUs that those on GPUs are compared with; NULL: none */
    const ms_prediction *reference;
} ms_run_place;

/* Of this machine: predicted peaks of the ranks in it, and whole tensors that are asked
 * for, beside what is not in use within the limit of its control group (NaN: not known).
 * Or of the GPU that needs most: the peaks of its ranks beside all its memory. */
typedef struct ms_run_memory {
    double needed_bytes, available_bytes;
    const char *change; /* the nearest that fits, as flags; NULL: none was found */
    const char *reason; /* one sentence; NULL: there is room */
} ms_run_memory;

ms_run_memory ms_run_memory_of(ms_ctx *cx, ms_workload *workload,
                               const ms_prediction *prediction,
                               const ms_run_place *place);

/* Records what is missing and the change as its hint: MS_ENOFIT. */
ms_status ms_run_memory_fail(ms_ctx *cx, const ms_run_memory *room);
/* As an object with the keys of a prediction's shortfall: reason, needed_bytes,
 * capacity_bytes, shortfall_bytes, plan, nearest_change (null: none was found). */
void ms_run_memory_write_json(ms_jout *out, const ms_run_memory *room,
                              const ms_plan *plan);

#endif
