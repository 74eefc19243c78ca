/* Whether the memory of this machine suffices for the ranks of a run. */
#ifndef MS_CLI_OPTIONS_RUN_MEMORY_H
#define MS_CLI_OPTIONS_RUN_MEMORY_H

#include "cli/options/run_options.h"
#include "sim/step/prediction.h"

/* The ranks of a plan that run on this machine. */
typedef struct ms_run_place {
    const ms_world *world;
    long first_rank, num_ranks; /* consecutive ranks, as launchers fill nodes */
    long num_whole;   /* copies of all weights or gradients that processes hold or load */
    int num_gpus;     /* GPUs, which ranks use in turn; 0: ranks are in host memory */
    double gpu_bytes; /* all memory of each GPU, free or in use */
    /* prediction of the rank on CPUs that a check compares with; NULL: none */
    const ms_prediction *reference;
} ms_run_place;

/* Memory of a run where most is lacking, on one GPU or the host: bytes needed and
 * available. GPU: its ranks' predicted peaks; all its memory. Host: peaks of ranks on
 * CPUs, and whole tensors; free memory in the control group's limit (NaN: unknown). */
typedef struct ms_run_memory {
    double needed_bytes, available_bytes;
    const char *change; /* flags of the smallest change that fits; NULL: none was found */
    const char *reason; /* one sentence on what is short; NULL: memory suffices */
} ms_run_memory;

/* Sets the GPUs of `place`; leaves it without where the driver finds none. */
void ms_run_place_on_gpus(const ms_ctx *cx, ms_run_place *place);

ms_run_memory ms_run_memory_of(ms_ctx *cx, ms_workload *workload,
                               const ms_prediction *prediction,
                               const ms_run_place *place);

/* Records the reason as an error, with the change as its hint: MS_ENOFIT. */
ms_status ms_run_memory_fail(ms_ctx *cx, const ms_run_memory *shortfall);
/* Writes an object with the keys of a prediction's shortfall: reason, needed_bytes,
 * capacity_bytes, shortfall_bytes, plan, nearest_change (null: none was found). */
void ms_run_memory_write_json(ms_jout *out, const ms_run_memory *shortfall,
                              const ms_plan *plan);

#endif
