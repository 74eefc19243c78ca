/* What `meshsim run` says: text and JSON of one run, measured beside predicted. */
#ifndef MS_CLI_REPORT_RUN_REPORT_H
#define MS_CLI_REPORT_RUN_REPORT_H

#include "cli/options/run_memory.h"
#include "exec/cuda/cuda_backend.h"
#include "exec/runner/measured.h"
#include "exec/runner/run_check.h"
#include "sim/step/prediction.h"

typedef struct ms_run_report {
    const ms_plan *plan;
    const ms_prediction *prediction;
    const ms_world *world;
    const char *backend, *dtype;
    bool on_gpu; /* backend cuda; the next two are of it */
    ms_cuda_transport transport;
    bool shares_gpus;           /* among ranks, by NCCL */
    const ms_cuda_used *device; /* of rank 0; NULL: no GPU */
    bool has_values;            /* losses are numbers */
    bool interrupted;
    long num_steps, warm_up;   /* asked for */
    const ms_outcome *outcome; /* of all ranks */
    ms_measured measured;
    ms_measured_times times;   /* of the pipeline rank that is predicted to end last */
    const ms_run_check *check; /* NULL: none */
    /* that is missing, so that no step was done; NULL: none is */
    const ms_run_memory *room;
} ms_run_report;

void ms_run_print(FILE *out, ms_arena *arena, const ms_run_report *report);
/* meshsim.run/1 */
void ms_run_write_json(ms_jout *out, const ms_run_report *report);

/* What alone the run shows, where ranks did not exchange over links: "correctness only"
 * (through host memory), "functional only" (ranks share a GPU by NCCL). NULL: its times
 * count. */
const char *ms_run_restriction(const ms_run_report *report);
/* Peak that is predicted for a rank: of its pipeline rank. */
const ms_stage_prediction *ms_run_predicted_stage(const ms_run_report *report, long rank);

#endif
